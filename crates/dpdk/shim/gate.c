/* Keeps drivers' interrupts and polls apart.
 *
 * DPDK's memif driver unmaps its rings on the interrupt thread when its peer leaves, while another
 * thread may be in the middle of polling them: that is a crash, and no lock of the driver's stands
 * between. Here the interrupt thread is made to wait in a callback of our own, on a descriptor that
 * is always readable, while ports are polled. Whoever polls lets it go round once now and then: it
 * announces itself, waits for polls to end, handles what there is and comes back to the callback.
 *
 *   interrupt thread:  [ waits in gate() ] -> running = 1 -> polling == 0 ? -> handlers -> [ ... ]
 *   polling thread:    polling = 1 -> running == 0 ? -> burst -> polling = 0
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_config.h>
#include <rte_interrupts.h>

#include "shim.h"

/* An interrupt waits no longer than that for a poll that lets it through. Ports that are polled ask
 * every 50 ms, and each round costs them a change of threads. If none asked in the last round, perhaps
 * nobody polls, and waiting is in vain. */
#define PATIENCE_NS 100000000L
#define IMPATIENCE_NS 10000000L
/* Of so many refused polls one sleeps: a thread of a real-time class yields to no other one. */
#define REFUSED_MAX 64
#define SLEEP_US 20

struct flag {
	_Alignas(64) atomic_bool is;
};

/* Each port's, and one of whoever starts or closes one. */
#define CHANGES RTE_MAX_ETHPORTS
static struct flag polling[RTE_MAX_ETHPORTS + 1];
/* Each one is counted by the thread that polls the port. */
static unsigned refused[RTE_MAX_ETHPORTS];
static atomic_bool running;
static atomic_bool asked;
/* Whether a port asked in the last round: known to the interrupt thread only. */
static bool attended;
static atomic_uint entered;
static sem_t turn;
static int always = -1;

/* Ports that are guarded, and whether the descriptor keeps quiet because none is. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned guarded;
static bool quiet = true;

static void wait_for_turn(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += attended ? PATIENCE_NS : IMPATIENCE_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	while (sem_timedwait(&turn, &until) != 0 && errno == EINTR)
		;
}

static void gate(void *argument)
{
	uint64_t count;

	atomic_store(&running, false);
	atomic_fetch_add(&entered, 1);
	pthread_mutex_lock(&lock);
	if (guarded == 0)
		quiet = quiet || read(always, &count, sizeof(count)) == sizeof(count);
	bool idle = guarded == 0;
	pthread_mutex_unlock(&lock);
	if (idle)
		return;
	wait_for_turn();
	attended = atomic_exchange(&asked, false);
	atomic_store(&running, true);
	for (int port = 0; port <= CHANGES; port++)
		while (atomic_load(&polling[port].is))
			sched_yield();
}

static int prepare(void)
{
	struct rte_intr_handle *handle;

	if (always >= 0)
		return 0;
	if (sem_init(&turn, 0, 0) != 0)
		return -errno;
	always = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (always < 0)
		return -errno;
	handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (handle == NULL || rte_intr_fd_set(handle, always) != 0 ||
	    rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) != 0 ||
	    rte_intr_callback_register(handle, gate, NULL) != 0) {
		rte_intr_instance_free(handle);
		close(always);
		always = -1;
		return -EIO;
	}
	return 0;
}

int ms_gate_guard(void)
{
	uint64_t one = 1;
	unsigned before;
	bool wake;
	int done;

	pthread_mutex_lock(&lock);
	done = prepare();
	if (done == 0 && quiet && write(always, &one, sizeof(one)) != sizeof(one))
		done = -EIO;
	if (done != 0) {
		pthread_mutex_unlock(&lock);
		return done;
	}
	guarded++;
	wake = quiet;
	quiet = false;
	before = atomic_load(&entered);
	pthread_mutex_unlock(&lock);
	/* Until the interrupt thread has come to the gate it may be anywhere. */
	for (int tries = 0; wake && atomic_load(&entered) == before; tries++) {
		if (tries > 5000) {
			ms_gate_unguard();
			return -ETIMEDOUT;
		}
		usleep(200);
	}
	return 0;
}

void ms_gate_unguard(void)
{
	pthread_mutex_lock(&lock);
	guarded--;
	pthread_mutex_unlock(&lock);
	sem_post(&turn);
}

bool ms_gate_enter(uint16_t port)
{
	atomic_store(&polling[port].is, true);
	if (!atomic_load(&running))
		return true;
	atomic_store_explicit(&polling[port].is, false, memory_order_release);
	return false;
}

void ms_gate_make_way(uint16_t port)
{
	/* The interrupt thread may be on this CPU, and would get it at the end of our slice only. */
	if (++refused[port] % REFUSED_MAX == 0)
		usleep(SLEEP_US);
	else
		sched_yield();
}

void ms_gate_leave(uint16_t port)
{
	atomic_store_explicit(&polling[port].is, false, memory_order_release);
}

void ms_gate_hold(void)
{
	while (!ms_gate_enter(CHANGES))
		sched_yield();
}

void ms_gate_let_go(void)
{
	ms_gate_leave(CHANGES);
}

void ms_gate_turn(void)
{
	if (!atomic_exchange(&asked, true))
		sem_post(&turn);
}
