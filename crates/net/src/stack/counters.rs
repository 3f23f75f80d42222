//! The counters of a stack: every dropped packet has a cause here.

millstream_link::counters! {
    /// Packets of one stack since it was made.
    StackCounters {
        /// UDP datagrams delivered.
        rx_datagrams,
        /// Their payload, bytes.
        rx_bytes,
        /// UDP headers written.
        tx_datagrams,
        /// Their payload, bytes.
        tx_bytes,
        /// ARP packets received and understood.
        rx_arp,
        /// ARP packets written: requests, replies, probes, announcements.
        tx_arp,
        /// Echo requests received and answered.
        echo_requests,
        /// "Port unreachable" messages written.
        tx_unreachable,
        /// ICMP error messages received about our ports.
        rx_icmp_errors,
        /// Of these, "fragmentation needed" about a datagram that we sent: routers may fragment
        /// those that follow it.
        paths_narrowed,
        /// Of these, "fragmentation needed" that cannot be true: no datagram of that length went
        /// that way.
        icmp_doubted,
        /// Received datagrams whose checksum was left to hardware by a sender on this machine.
        partial_checksums,
        /// Dropped: it ends before its headers or its stated length.
        truncated,
        /// Dropped: an IP header that contradicts itself, or of another version.
        bad_header,
        /// Dropped: the checksum of the IP header is wrong.
        bad_ip_checksum,
        /// Dropped: the checksum of the UDP datagram is wrong.
        bad_udp_checksum,
        /// Dropped: the checksum of the ICMP message is wrong.
        bad_icmp_checksum,
        /// Dropped: an ARP packet that is malformed, or has impossible addresses.
        bad_arp,
        /// Dropped: a frame in more parts than the stack reads.
        too_many_parts,
        /// Dropped: a fragment of a packet; nothing is reassembled here.
        fragments,
        /// Dropped: neither ARP nor IPv4.
        other_ether_type,
        /// Dropped: neither UDP, nor ICMP that we answer.
        other_protocol,
        /// Dropped: in another VLAN than ours, or in a VLAN where we use none.
        other_vlan,
        /// Dropped: for another station or address.
        not_ours,
        /// Dropped: from an address that no station has.
        bad_source,
        /// Dropped: for a UDP port that is not registered.
        no_port,
        /// Not written: "port unreachable" beyond the rate limit.
        rate_limited,
        /// Not written: an answer or request that does not fit the buffer for it.
        too_long_to_answer,
        /// Datagrams not sent because the next hop's Ethernet address was not known yet.
        unresolved,
        /// Datagrams not sent because there is no route to the destination.
        unreachable,
        /// Datagrams not sent because they are longer than the MTU.
        too_long,
        /// ARP packets in which another station used our address.
        arp_conflicts,
        /// Neighbours that changed their Ethernet address.
        neighbours_moved,
        /// Neighbours not stored, because the table was full of ones in use.
        neighbours_full,
        /// Neighbours that did not answer.
        neighbours_lost,
        /// Own addresses not taken, because another station has them.
        addresses_lost,
    }
}
