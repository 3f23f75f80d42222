/* The environment abstraction layer: started once in a process, by us or by whoever we are in. */

#include <errno.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "shim.h"

bool ms_eal_runs(void)
{
	/* Counted by rte_eal_init, and 0 before. */
	return rte_lcore_count() > 0;
}

bool ms_eal_has_huge_pages(void)
{
	return rte_eal_has_hugepages() != 0;
}

int ms_eal_start(int count, char **arguments)
{
	if (rte_eal_init(count, arguments) >= 0)
		return 0;
	return rte_errno > 0 ? -rte_errno : -EIO;
}

void ms_sizes(size_t *sizes)
{
	sizes[0] = sizeof(struct ms_wanted);
	sizes[1] = sizeof(struct ms_port);
	sizes[2] = sizeof(struct ms_part);
	sizes[3] = sizeof(struct ms_counted);
}
