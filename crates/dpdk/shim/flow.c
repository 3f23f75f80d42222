/* Rules of the device that take a UDP port's datagrams to a queue. */

#include <string.h>

#include <rte_byteorder.h>
#include <rte_flow.h>

#include "shim.h"

struct rte_flow *ms_flow_add(const struct ms_port *port, uint16_t udp_port, uint16_t queue)
{
	struct rte_flow_attr attributes = { .ingress = 1 };
	struct rte_flow_item_udp udp, mask;
	struct rte_flow_action_queue to = { .index = queue };
	struct rte_flow_error error;

	memset(&udp, 0, sizeof(udp));
	memset(&mask, 0, sizeof(mask));
	memset(&error, 0, sizeof(error));
	udp.hdr.dst_port = rte_cpu_to_be_16(udp_port);
	mask.hdr.dst_port = UINT16_MAX;
	struct rte_flow_item pattern[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = RTE_FLOW_ITEM_TYPE_IPV4 },
		{ .type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	return rte_flow_create(port->id, &attributes, pattern, actions, &error);
}

void ms_flow_remove(const struct ms_port *port, struct rte_flow *rule)
{
	struct rte_flow_error error;

	memset(&error, 0, sizeof(error));
	rte_flow_destroy(port->id, rule, &error);
}
