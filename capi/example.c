/* Receives a second and counts what is missing, then transmits a burst half a second ahead.
 *
 *     cc example.c -lmillstream_c -o example
 *     ./example addr=192.168.10.2
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "millstream.h"

#define SECOND_NS INT64_C(1000000000)
#define RATE 1000000
#define BURST 5000
#define BLOCK 4096

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, millstream_error());
    return 1;
}

static int receive(millstream_handle radio)
{
    static float samples[BLOCK][2];
    void *const buffers[] = {samples};
    const uint32_t channels[] = {0};
    uint64_t got = 0, missing = 0;
    unsigned gaps = 0;
    millstream_received received = {0};
    millstream_handle stream;
    char lost[32];

    if (millstream_stream(radio, MILLSTREAM_RX, MILLSTREAM_FC32, channels, 1, NULL, &stream) < 0 ||
        millstream_start(stream, NULL, RATE) < 0)
        return failed("receive");
    while (!received.end) {
        int64_t count = millstream_read(stream, buffers, BLOCK, 5 * SECOND_NS, &received);
        if (count == MILLSTREAM_GAP) {
            gaps++;
            missing += received.missing;
            printf("%" PRIu64 " samples are missing (%s) before %.6f s\n", received.missing, received.cause,
                   (double)received.time.ticks / received.time.rate_hz);
        } else if (count < 0) {
            return failed("read");
        } else if (count == 0 && !received.end) {
            fprintf(stderr, "no samples came in 5 s\n");
            return 1;
        } else {
            got += (uint64_t)count;
        }
    }
    if (millstream_get(radio, MILLSTREAM_RX, 0, "ledger_lost", lost, sizeof lost) < 0)
        return failed("ledger");
    printf("%" PRIu64 " samples, %u gaps with %" PRIu64 " samples, %s by the ledger\n", got, gaps, missing, lost);
    return millstream_close(stream, SECOND_NS) < 0 ? failed("close") : 0;
}

static int transmit(millstream_handle radio)
{
    static int16_t samples[BURST][2];
    const void *const buffers[] = {samples};
    const uint32_t channels[] = {0};
    millstream_handle stream;
    millstream_time start;
    millstream_event event;
    int16_t n;

    for (n = 0; n < BURST; n++) {
        samples[n][0] = (int16_t)(n + 1);
        samples[n][1] = (int16_t)-n;
    }
    if (millstream_stream(radio, MILLSTREAM_TX, MILLSTREAM_SC16, channels, 1, NULL, &stream) < 0 ||
        millstream_start(stream, NULL, 0) < 0 || millstream_now(radio, &start) < 0)
        return failed("transmit");
    start.ticks += (uint64_t)(start.rate_hz / 2);
    if (millstream_write(stream, buffers, BURST, &start, 1, SECOND_NS) != BURST)
        return failed("write");
    do {
        if (millstream_next_event(stream, 5 * SECOND_NS, &event) != 1)
            return failed("the end of the burst");
        if (event.kind == MILLSTREAM_EVENT_LATE || event.kind == MILLSTREAM_EVENT_UNDERFLOW)
            printf("the radio reports event %d\n", (int)event.kind);
    } while (event.kind != MILLSTREAM_EVENT_BURST_END);
    printf("a burst of %d samples has left\n", BURST);
    return millstream_close(stream, SECOND_NS) < 0 ? failed("close") : 0;
}

int main(int count, char **arguments)
{
    millstream_handle radio;
    int result;

    if (millstream_open(count > 1 ? arguments[1] : "radio=emulated", &radio) < 0)
        return failed("open");
    if (millstream_set(radio, MILLSTREAM_RX, 0, "rate", "1e6") < 0 ||
        millstream_set(radio, MILLSTREAM_TX, 0, "rate", "1e6") < 0 ||
        millstream_set(radio, MILLSTREAM_RX, 0, "frequency", "433.9e6") < 0 ||
        millstream_set(radio, MILLSTREAM_RX, 0, "gain", "40") < 0)
        result = failed("set");
    else
        result = receive(radio) || transmit(radio);
    millstream_close(radio, 5 * SECOND_NS);
    return result;
}
