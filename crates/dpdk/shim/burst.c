/* The way of every frame. */

#include <sched.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "shim.h"

#define BURST MS_BURST

/* A frame in another buffer than one of ours to receive into (net_ring passes those of the sender)
 * is copied: it would be missing where it comes from, and may not lie in the frame memory. */
static struct rte_mbuf *own(const struct ms_port *port, struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy, *part;
	bool ours = true;

	for (part = mbuf; part != NULL; part = part->next)
		ours = ours && part->pool == port->receive && RTE_MBUF_DIRECT(part);
	if (likely(ours))
		return mbuf;
	copy = rte_pktmbuf_copy(mbuf, port->receive, 0, UINT32_MAX);
	rte_pktmbuf_free(mbuf);
	return copy;
}

static void describe(struct ms_part *part, struct rte_mbuf *mbuf, uint64_t flags, uint16_t vlan)
{
	const uint64_t sums = RTE_MBUF_F_RX_L4_CKSUM_MASK;

	part->mbuf = mbuf;
	part->data = rte_pktmbuf_mtod(mbuf, uint8_t *);
	part->bytes = mbuf->data_len;
	part->room = mbuf->buf_len - mbuf->data_off;
	part->checksum_start = 0;
	part->continues = mbuf->next != NULL;
	part->tagged = (flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
	part->vlan = vlan;
	/* Good; or not summed up, because the frame never left this machine. The IP header's is the
	 * stack's to look at: not every device does. */
	part->trusted = (flags & sums) == RTE_MBUF_F_RX_L4_CKSUM_GOOD ||
			(flags & sums) == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

static unsigned take_apart(struct rte_mbuf *mbuf, struct ms_part *parts)
{
	uint64_t flags = mbuf->ol_flags;
	uint16_t vlan = mbuf->vlan_tci;
	unsigned count = 0;

	while (mbuf != NULL) {
		struct rte_mbuf *next = mbuf->next;

		describe(&parts[count++], mbuf, flags, vlan);
		mbuf->next = NULL;
		mbuf->nb_segs = 1;
		mbuf = next;
	}
	return count;
}

unsigned ms_receive(struct ms_port *port, uint16_t queue, struct ms_part *parts, unsigned room,
		    uint64_t *lost)
{
	unsigned count = 0;

	if (unlikely(!port->started))
		return 0;
	if (likely(port->next == port->end)) {
		if (port->guarded && !ms_gate_enter(port->id)) {
			ms_gate_make_way(port->id);
			return 0;
		}
		port->next = 0;
		port->end = rte_eth_rx_burst(port->id, queue, port->waiting,
					     room < BURST ? room : BURST);
		if (port->guarded)
			ms_gate_leave(port->id);
	}
	while (port->next < port->end) {
		struct rte_mbuf *mbuf = own(port, port->waiting[port->next]);

		port->waiting[port->next] = mbuf;
		if (mbuf == NULL || unlikely(mbuf->nb_segs > BURST)) {
			rte_pktmbuf_free(mbuf);
			*lost += 1;
		} else if (unlikely(count + mbuf->nb_segs > room)) {
			break;
		} else {
			count += take_apart(mbuf, parts + count);
		}
		port->next++;
	}
	return count;
}

void ms_forget(struct ms_port *port)
{
	while (port->next < port->end)
		rte_pktmbuf_free(port->waiting[port->next++]);
}

/* One frame out of its parts; how many they are. */
static unsigned put_together(const struct ms_part *parts, struct rte_mbuf **frame)
{
	struct rte_mbuf *head = parts[0].mbuf, *last = NULL;
	unsigned count = 0;
	bool more = true;

	head->pkt_len = 0;
	while (more) {
		const struct ms_part *part = &parts[count++];
		struct rte_mbuf *mbuf = part->mbuf;

		mbuf->data_off = part->data - (uint8_t *)mbuf->buf_addr;
		mbuf->data_len = part->bytes;
		head->pkt_len += part->bytes;
		if (last != NULL)
			last->next = mbuf;
		last = mbuf;
		more = part->continues;
	}
	head->nb_segs = count;
	head->ol_flags = 0;
	if (parts[0].checksum_start > 20) {
		head->l2_len = parts[0].checksum_start - 20;
		head->l3_len = 20;
		head->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
	}
	*frame = head;
	return count;
}

static void separate(struct rte_mbuf *mbuf)
{
	while (mbuf != NULL) {
		struct rte_mbuf *next = mbuf->next;

		mbuf->next = NULL;
		mbuf->nb_segs = 1;
		mbuf = next;
	}
}

/* Interrupts run for microseconds, as a rule: frames that wait for them leave now and not with the
 * next call. */
static bool enter_soon(uint16_t port)
{
	for (int tries = 0; tries < 64; tries++) {
		if (ms_gate_enter(port))
			return true;
		ms_gate_make_way(port);
	}
	return false;
}

unsigned ms_transmit(const struct ms_port *port, uint16_t queue, const struct ms_part *parts,
		     unsigned count, bool *busy)
{
	struct rte_mbuf *mbufs[BURST];
	unsigned ends[BURST + 1] = { 0 };
	uint16_t frames = 0, sent;

	if (unlikely(!port->started))
		return 0;
	while (frames < BURST && ends[frames] < count) {
		ends[frames + 1] = ends[frames] + put_together(parts + ends[frames], &mbufs[frames]);
		frames++;
	}
	if (port->guarded && !enter_soon(port->id)) {
		sent = 0;
		*busy = true;
	} else {
		sent = rte_eth_tx_burst(port->id, queue, mbufs, frames);
		if (port->guarded)
			ms_gate_leave(port->id);
	}
	for (uint16_t at = sent; at < frames; at++)
		separate(mbufs[at]);
	return ends[sent];
}

void ms_clean(const struct ms_port *port, uint16_t queue)
{
	if (!port->started || (port->guarded && !ms_gate_enter(port->id)))
		return;
	rte_eth_tx_done_cleanup(port->id, queue, 0);
	if (port->guarded)
		ms_gate_leave(port->id);
}

unsigned ms_reserve(const struct ms_port *port, struct ms_part *parts, unsigned count)
{
	struct rte_mbuf *mbufs[BURST];
	unsigned done = 0;

	while (done < count) {
		unsigned want = count - done < BURST ? count - done : BURST;

		if (rte_pktmbuf_alloc_bulk(port->transmit, mbufs, want) != 0) {
			if (want == 1)
				break;
			/* The last few one by one. */
			count = done + want / 2;
			continue;
		}
		for (unsigned at = 0; at < want; at++) {
			describe(&parts[done + at], mbufs[at], 0, 0);
			parts[done + at].bytes = 0;
		}
		done += want;
	}
	return done;
}

void ms_release(struct rte_mbuf **mbufs, unsigned count)
{
	rte_pktmbuf_free_bulk(mbufs, count);
}
