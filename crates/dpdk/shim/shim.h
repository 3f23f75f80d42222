/* The seam between the crate and DPDK: what Rust cannot call because it is inline, or should not
 * see because it is large. `src/raw.rs` declares the same. */

#ifndef MILLSTREAM_SHIM_H
#define MILLSTREAM_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rte_mempool;
struct rte_mbuf;

/* How to open a port. */
struct ms_wanted {
	/* As EAL takes it: a PCI address or a virtual device with its arguments. */
	const char *devargs;
	uint16_t queues;
	/* Descriptors of each queue; 0: as many as the driver suggests. */
	uint16_t receive_ring, transmit_ring;
	/* Buffers, and the bytes of data that each holds. */
	uint32_t receive_frames, transmit_frames;
	uint16_t frame_bytes;
	/* Largest IP packet; 0: as the device has it. */
	uint16_t mtu;
	/* Its driver's interrupts must not run while it is polled (gate.c). */
	bool guarded;
	/* Has the device check and complete checksums, where it can. */
	bool checksums;
};

/* A port that is open. */
/* Frames that one call receives at most, and parts that a frame may have. */
#define MS_BURST 64

struct ms_port {
	struct rte_mempool *receive, *transmit;
	/* The range that both pools lie in. */
	uintptr_t base;
	uint64_t bytes;
	uint16_t id, queues, mtu;
	uint16_t receive_ring, transmit_ring;
	uint8_t mac[6];
	bool guarded, started;
	/* Frames that the driver has handed over and the caller has yet to take: those from `next` to
	 * `end`. */
	uint16_t next, end;
	struct rte_mbuf *waiting[MS_BURST];
	/* What the device does of: checking UDP checksums, completing them, several parts a frame. */
	bool checks, completes, gathers;
	int numa_node;
	char driver[32];
};

/* One buffer of a frame. */
struct ms_part {
	struct rte_mbuf *mbuf;
	uint8_t *data;
	uint32_t bytes, room;
	/* To transmit: where a UDP checksum is summed from; 0: it is not left to the device. */
	uint16_t checksum_start;
	uint16_t vlan;
	/* The next part belongs to the same frame. */
	bool continues;
	bool trusted, tagged;
};

/* What the device counted. */
struct ms_counted {
	uint64_t missed, without_buffer, receive_errors, transmit_errors;
};

enum ms_link { MS_LINK_UP, MS_LINK_DOWN, MS_LINK_GONE };

/* Starts EAL on the calling thread, which it pins; 0, or -errno. */
int ms_eal_start(int count, char **arguments);
/* Whether somebody has started EAL in this process. */
bool ms_eal_runs(void);
bool ms_eal_has_huge_pages(void);
/* The last lines that DPDK logged since the last call; how many bytes. */
size_t ms_log_take(char *out, size_t bytes);
/* Has what DPDK logs kept for ms_log_take. */
void ms_log_keep(void);
/* Has what is logged from now on dropped, or kept again: what is said while a port that failed is taken
 * down is not its cause. */
void ms_log_mute(bool mute);
/* DPDK's words for an error number of the system's or of its own. */
const char *ms_error_text(int number);

/* 0, or -errno with the step that failed in `step`. */
int ms_port_open(const struct ms_wanted *wanted, struct ms_port *port, const char **step);
/* Starts a port that could not start when it was opened, or that has lost its peer. */
int ms_port_restart(struct ms_port *port);
/* A pool goes with it when none of its buffers is out; otherwise it stays. */
void ms_port_close(struct ms_port *port);
enum ms_link ms_port_link(const struct ms_port *port);
void ms_port_counted(const struct ms_port *port, struct ms_counted *counted);
/* Buffers that are free: to receive into, to transmit from. */
void ms_port_free(const struct ms_port *port, unsigned *receive, unsigned *transmit);

/* Receives from one queue, after what has waited for room; how many parts. A frame that finds too
 * little room waits for the next call; `*lost` grows by frames in more than MS_BURST parts. */
unsigned ms_receive(struct ms_port *port, uint16_t queue, struct ms_part *parts,
		    unsigned room, uint64_t *lost);
/* Frees what has waited for room. */
void ms_forget(struct ms_port *port);
/* Transmits whole frames; how many parts the device took. `*busy`: it could not be asked now. */
unsigned ms_transmit(const struct ms_port *port, uint16_t queue, const struct ms_part *parts,
		     unsigned count, bool *busy);
/* Has the device give back what it has sent. */
void ms_clean(const struct ms_port *port, uint16_t queue);
unsigned ms_reserve(const struct ms_port *port, struct ms_part *parts, unsigned count);
void ms_release(struct rte_mbuf **mbufs, unsigned count);

/* A rule that takes datagrams for a UDP port to a queue; NULL where the device has none. */
struct rte_flow *ms_flow_add(const struct ms_port *port, uint16_t udp_port, uint16_t queue);
void ms_flow_remove(const struct ms_port *port, struct rte_flow *rule);

/* Whether the port may be polled now; then ms_gate_leave must follow soon. */
bool ms_gate_enter(uint16_t port);
/* For a thread that was refused: lets the interrupt thread have the CPU. */
void ms_gate_make_way(uint16_t port);
void ms_gate_leave(uint16_t port);
/* Keeps drivers' interrupts away while a port is started or closed, by one thread at a time. */
void ms_gate_hold(void);
void ms_gate_let_go(void);
/* Lets the drivers' interrupts run once; polls find nothing meanwhile. */
void ms_gate_turn(void);
int ms_gate_guard(void);
void ms_gate_unguard(void);

/* The sizes of the structs above, for the test that compares them with those of `src/raw.rs`. */
void ms_sizes(size_t *sizes);

#endif
