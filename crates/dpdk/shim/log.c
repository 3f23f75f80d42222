/* What DPDK has to say goes into a small ring of bytes: an error shows its end, and nothing is
 * written to the caller's standard error. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

#include <rte_errno.h>
#include <rte_log.h>

#include "shim.h"

#define KEPT 2048

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char kept[KEPT];
static size_t written;
static bool muted;

static ssize_t keep(void *cookie, const char *text, size_t bytes)
{
	pthread_mutex_lock(&lock);
	for (size_t at = 0; at < bytes && !muted; at++)
		kept[written++ % KEPT] = text[at];
	pthread_mutex_unlock(&lock);
	return (ssize_t)bytes;
}

void ms_log_keep(void)
{
	cookie_io_functions_t functions = { .write = keep };
	FILE *stream = fopencookie(NULL, "w", functions);

	if (stream == NULL)
		return;
	setvbuf(stream, NULL, _IOLBF, 512);
	rte_openlog_stream(stream);
}

void ms_log_mute(bool mute)
{
	FILE *stream = rte_log_get_stream();

	if (stream != NULL)
		fflush(stream);
	pthread_mutex_lock(&lock);
	muted = mute;
	pthread_mutex_unlock(&lock);
}

const char *ms_error_text(int number)
{
	return rte_strerror(number);
}

size_t ms_log_take(char *out, size_t bytes)
{
	FILE *stream = rte_log_get_stream();
	size_t count = 0;

	if (stream != NULL)
		fflush(stream);
	pthread_mutex_lock(&lock);
	size_t from = written > KEPT ? written - KEPT : 0;
	if (written - from > bytes)
		from = written - bytes;
	while (from + count < written) {
		out[count] = kept[(from + count) % KEPT];
		count++;
	}
	written = 0;
	pthread_mutex_unlock(&lock);
	return count;
}
