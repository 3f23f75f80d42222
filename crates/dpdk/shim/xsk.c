/* Sockets that the AF_XDP driver of DPDK 22.11 leaves open when its port is closed: as long as they
 * are, the kernel gives their queues to nobody else. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/if_xdp.h>

#include <rte_config.h>
#include <rte_ethdev.h>
#include <rte_power_intrinsics.h>

#include "shim.h"

/* Descriptors that are looked at. */
#define DESCRIPTORS 65536

struct ms_socket {
	int descriptor;
	ino_t inode;
	/* The kernel copies: no device writes into the buffers by itself. */
	bool copies;
};

static bool is_socket(int descriptor, ino_t inode)
{
	struct stat stat;

	return fstat(descriptor, &stat) == 0 && S_ISSOCK(stat.st_mode) && stat.st_ino == inode;
}

static bool copies(int descriptor)
{
	struct xdp_options options = { 0 };
	socklen_t bytes = sizeof(options);

	return getsockopt(descriptor, SOL_XDP, XDP_OPTIONS, &options, &bytes) == 0 &&
	       (options.flags & XDP_OPTIONS_ZEROCOPY) == 0;
}

/* What is mapped at an address; 0 if nothing is. */
static ino_t inode_at(uintptr_t address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t first, end, inode, found = 0;
	char line[512];

	while (maps != NULL && found == 0 && fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %*s %" SCNu64, &first, &end,
			   &inode) == 3 && first <= address && address < end)
			found = inode;
	if (maps != NULL)
		fclose(maps);
	return (ino_t)found;
}

/* The socket of a queue: whose ring is mapped where the driver would have a CPU watch it. */
static struct ms_socket find(uint16_t port, uint16_t queue)
{
	struct ms_socket found = { .descriptor = -1 };
	struct rte_power_monitor_cond watched;

	if (rte_eth_get_monitor_addr(port, queue, &watched) != 0)
		return found;
	found.inode = inode_at((uintptr_t)watched.addr);
	for (int at = 0; found.inode != 0 && found.descriptor < 0 && at < DESCRIPTORS; at++)
		if (is_socket(at, found.inode)) {
			found.descriptor = at;
			found.copies = copies(at);
		}
	return found;
}

struct ms_socket *ms_sockets_find(const struct ms_port *port)
{
	struct ms_socket *sockets = calloc(port->queues, sizeof(*sockets));

	for (uint16_t queue = 0; sockets != NULL && queue < port->queues; queue++)
		sockets[queue] = find(port->id, queue);
	return sockets;
}

bool ms_sockets_close(struct ms_socket *sockets, unsigned count)
{
	bool free_of_kernel = sockets != NULL;

	for (unsigned at = 0; sockets != NULL && at < count; at++) {
		if (sockets[at].descriptor >= 0 &&
		    is_socket(sockets[at].descriptor, sockets[at].inode))
			close(sockets[at].descriptor);
		free_of_kernel &= sockets[at].descriptor >= 0 && sockets[at].copies;
	}
	free(sockets);
	return free_of_kernel;
}
