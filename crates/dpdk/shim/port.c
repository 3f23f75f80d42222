/* Ports: found or made, configured, started, and taken down again. */

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "shim.h"

static int failure(int code)
{
	if (code == 0)
		return 0;
	return code < -1 ? code : rte_errno > 0 ? -rte_errno : -EIO;
}

static void widen(struct rte_mempool *pool, void *argument, struct rte_mempool_memhdr *chunk,
		  unsigned index)
{
	struct ms_port *port = argument;
	uintptr_t first = (uintptr_t)chunk->addr, end = first + chunk->len;
	uintptr_t last = port->base + port->bytes;

	(void)pool;
	(void)index;
	if (port->bytes == 0 || first < port->base)
		port->base = first;
	if (last < end)
		last = end;
	port->bytes = last - port->base;
}

/* The buffer that came back last is the next one: as many take turns as are in use, which stay in the
 * caches. DPDK's own choice is a ring, in which all of them do. */
#define LAST_FIRST "lf_stack"

/* On a memory node, or any (SOCKET_ID_ANY). No caches: a link belongs to one thread at a time, but to
 * no fixed lcore. */
static struct rte_mempool *make_pool_on(int node, const char *name, unsigned count, unsigned room)
{
	struct rte_mempool *pool;

	pool = rte_pktmbuf_pool_create_by_ops(name, count, 0, 0, room, node, LAST_FIRST);
	/* A DPDK that was built without it has its own choice. */
	return pool ? pool : rte_pktmbuf_pool_create(name, count, 0, 0, room, node);
}

static struct rte_mempool *make_pool(struct ms_port *port, char side, unsigned count,
				     unsigned bytes)
{
	/* A pool that is still in use when its port is closed keeps its name. */
	static atomic_uint number;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "ms-%u%c", atomic_fetch_add(&number, 1), side);
	pool = make_pool_on(port->numa_node, name, count, bytes + RTE_PKTMBUF_HEADROOM);
	/* Far memory is slow, none is worse. */
	if (pool == NULL && port->numa_node != SOCKET_ID_ANY)
		pool = make_pool_on(SOCKET_ID_ANY, name, count, bytes + RTE_PKTMBUF_HEADROOM);
	if (pool != NULL)
		rte_mempool_mem_iter(pool, widen, port);
	return pool;
}

static int pools(const struct ms_wanted *wanted, struct ms_port *port)
{
	unsigned receive = wanted->receive_frames + (unsigned)port->receive_ring * port->queues;
	/* A driver may keep a ring full of what it has sent until it is given more. */
	unsigned transmit = wanted->transmit_frames + (unsigned)port->transmit_ring * port->queues;

	port->receive = make_pool(port, 'r', receive, wanted->frame_bytes);
	if (port->receive == NULL)
		return failure(-1);
	port->transmit = make_pool(port, 't', transmit, wanted->frame_bytes);
	return port->transmit == NULL ? failure(-1) : 0;
}

static void offloads(const struct ms_wanted *wanted, struct rte_eth_conf *conf,
		     const struct rte_eth_dev_info *info, struct ms_port *port)
{
	const uint64_t checks = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;

	if (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) {
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
		port->gathers = true;
	}
	if (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER)
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
	if (!wanted->checksums)
		return;
	/* Each that there is: what is not vouched for the stack sums up. */
	conf->rxmode.offloads |= info->rx_offload_capa & checks;
	port->checks = (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_UDP_CKSUM) != 0;
	if (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) {
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
		port->completes = true;
	}
}

static void spread(struct rte_eth_conf *conf, const struct rte_eth_dev_info *info, uint16_t queues)
{
	uint64_t kinds = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_IPV4;

	kinds &= info->flow_type_rss_offloads;
	if (queues > 1 && kinds != 0) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf = kinds;
	}
}

static int configure(const struct ms_wanted *wanted, struct ms_port *port)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	uint16_t receive, transmit;
	int done = rte_eth_dev_info_get(port->id, &info);

	if (done != 0)
		return done;
	memset(&conf, 0, sizeof(conf));
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	if (wanted->queues > info.max_rx_queues || wanted->queues > info.max_tx_queues)
		return -ERANGE;
	port->queues = wanted->queues;
	port->numa_node = rte_eth_dev_socket_id(port->id);
	conf.rxmode.mtu = wanted->mtu;
	offloads(wanted, &conf, &info, port);
	spread(&conf, &info, port->queues);
	done = rte_eth_dev_configure(port->id, port->queues, port->queues, &conf);
	if (done == -EINVAL && wanted->mtu > RTE_ETHER_MTU && info.max_rx_pktlen <= 1518) {
		/* A device in software that never said how long its frames may be. */
		conf.rxmode.mtu = 0;
		done = rte_eth_dev_configure(port->id, port->queues, port->queues, &conf);
	}
	if (done != 0)
		return done;
	receive = wanted->receive_ring ? wanted->receive_ring : info.default_rxportconf.ring_size;
	transmit = wanted->transmit_ring ? wanted->transmit_ring :
					   info.default_txportconf.ring_size;
	port->receive_ring = receive ? receive : 1024;
	port->transmit_ring = transmit ? transmit : 1024;
	return rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &port->receive_ring,
						&port->transmit_ring);
}

static int queues(struct ms_port *port)
{
	int node = port->numa_node, done = 0;

	for (uint16_t queue = 0; queue < port->queues && done == 0; queue++) {
		done = rte_eth_rx_queue_setup(port->id, queue, port->receive_ring, node, NULL,
					      port->receive);
		if (done == 0)
			done = rte_eth_tx_queue_setup(port->id, queue, port->transmit_ring, node,
						      NULL);
	}
	return done;
}

static int find(const char *devargs, uint16_t *id)
{
	char name[RTE_DEV_NAME_MAX_LEN];
	size_t bytes = strcspn(devargs, ",");
	int done;

	if (bytes >= sizeof(name))
		return -ENAMETOOLONG;
	memcpy(name, devargs, bytes);
	name[bytes] = 0;
	if (rte_eth_dev_get_port_by_name(name, id) == 0)
		return -EEXIST;
	done = rte_dev_probe(devargs);
	if (done != 0)
		return failure(done);
	if (rte_eth_dev_get_port_by_name(name, id) == 0)
		return 0;
	/* Probed and without a port: no driver has taken it. */
	return -ENODEV;
}

/* What has come and was not taken: net_ring forgets it, and with it the sender's buffers. */
static void drain(struct ms_port *port)
{
	struct rte_mbuf *mbufs[64];

	for (uint16_t queue = 0; queue < port->queues; queue++)
		for (int bursts = 0; bursts < 1024; bursts++) {
			uint16_t got = rte_eth_rx_burst(port->id, queue, mbufs, 64);

			if (got == 0)
				break;
			rte_pktmbuf_free_bulk(mbufs, got);
		}
}

static void take_down(struct ms_port *port)
{
	struct rte_eth_dev_info info;
	struct rte_device *device = NULL;

	if (rte_eth_dev_info_get(port->id, &info) == 0)
		device = info.device;
	/* The driver frees here what its interrupts use. */
	if (port->guarded)
		ms_gate_hold();
	if (port->started) {
		drain(port);
		rte_eth_dev_stop(port->id);
	}
	rte_eth_dev_close(port->id);
	if (device != NULL)
		rte_dev_remove(device);
	if (port->guarded) {
		ms_gate_let_go();
		ms_gate_unguard();
	}
	port->started = port->guarded = false;
}

int ms_port_restart(struct ms_port *port)
{
	int done;

	if (port->guarded)
		ms_gate_hold();
	if (port->started)
		rte_eth_dev_stop(port->id);
	done = rte_eth_dev_start(port->id);
	if (port->guarded)
		ms_gate_let_go();
	port->started = done == 0;
	if (done != 0)
		return failure(done);
	/* Not every device can; those that cannot receive everything anyway. */
	rte_eth_promiscuous_enable(port->id);
	return 0;
}

static int set_up(const struct ms_wanted *wanted, struct ms_port *port, const char **step)
{
	int done;

	*step = "configure the port";
	done = configure(wanted, port);
	if (done != 0)
		return failure(done);
	*step = "make pools of buffers";
	done = pools(wanted, port);
	if (done != 0)
		return done;
	*step = "set up the queues";
	done = queues(port);
	if (done != 0)
		return failure(done);
	*step = "start the port";
	done = ms_port_restart(port);
	/* A memif client has nobody to talk to yet: it is tried again. */
	if (done != 0 && !port->guarded)
		return done;
	rte_eth_macaddr_get(port->id, (struct rte_ether_addr *)port->mac);
	rte_eth_dev_get_mtu(port->id, &port->mtu);
	return 0;
}

int ms_port_open(const struct ms_wanted *wanted, struct ms_port *port, const char **step)
{
	int done;

	memset(port, 0, sizeof(*port));
	port->next = port->end = 0;
	*step = "keep interrupts apart";
	if (wanted->guarded) {
		done = ms_gate_guard();
		if (done != 0)
			return done;
	}
	*step = "probe the device";
	done = find(wanted->devargs, &port->id);
	if (done != 0) {
		if (wanted->guarded)
			ms_gate_unguard();
		return done;
	}
	port->guarded = wanted->guarded;
	done = set_up(wanted, port, step);
	if (done != 0) {
		ms_log_mute(true);
		ms_port_close(port);
		ms_log_mute(false);
		return done;
	}
	return 0;
}

void ms_port_close(struct ms_port *port)
{
	struct rte_mempool *pools[] = { port->receive, port->transmit };

	ms_forget(port);
	take_down(port);
	for (int side = 0; side < 2; side++)
		if (pools[side] != NULL && rte_mempool_in_use_count(pools[side]) == 0)
			rte_mempool_free(pools[side]);
	port->receive = port->transmit = NULL;
}

enum ms_link ms_port_link(const struct ms_port *port)
{
	struct rte_eth_link link;

	memset(&link, 0, sizeof(link));
	if (!port->started)
		return MS_LINK_DOWN;
	if (rte_eth_link_get_nowait(port->id, &link) != 0)
		return MS_LINK_UP;
	if (link.link_status == RTE_ETH_LINK_UP)
		return MS_LINK_UP;
	return rte_eth_dev_is_removed(port->id) == 1 ? MS_LINK_GONE : MS_LINK_DOWN;
}

void ms_port_counted(const struct ms_port *port, struct ms_counted *counted)
{
	struct rte_eth_stats stats;

	memset(&stats, 0, sizeof(stats));
	rte_eth_stats_get(port->id, &stats);
	counted->missed = stats.imissed;
	counted->without_buffer = stats.rx_nombuf;
	counted->receive_errors = stats.ierrors;
	counted->transmit_errors = stats.oerrors;
}

void ms_port_free(const struct ms_port *port, unsigned *receive, unsigned *transmit)
{
	*receive = rte_mempool_avail_count(port->receive);
	*transmit = rte_mempool_avail_count(port->transmit);
}
