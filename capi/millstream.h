/* Millstream's interface for C: a networked radio, opened, set, received from and transmitted to.
 *
 * - Radios and streams are numbers. A number that was closed never stands for anything else later, and 0 never stands
 *   for anything. A wrong number, a null pointer or a buffer that cannot be used is an error, and nothing happens.
 * - Every function may be called from any thread. Two reads of one stream take turns. What waits in one thread ends when
 *   another thread stops or closes it.
 * - A function returns 0 or a count, or one of the negative results below. millstream_error() then has the reason and the
 *   next step.
 * - The library keeps no pointer that it is given. Texts end with 0 and are UTF-8.
 * - The ABI is stable: functions and types keep their form for as long as the shared library is libmillstream_c.so.1.
 *
 * Compile with: cc program.c -lmillstream_c
 */
#ifndef MILLSTREAM_H
#define MILLSTREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open radio or stream. */
typedef uint64_t millstream_handle;

/* Results below 0. */
enum {
    MILLSTREAM_ERROR = -1,  /* it cannot be done: millstream_error() says why */
    MILLSTREAM_GAP = -2,    /* samples are missing here; read on behind them */
    MILLSTREAM_LATE = -3,   /* the stream did not start, because its time had passed */
    MILLSTREAM_CLOSED = -4  /* the number stands for nothing that is open */
};

/* Directions. */
enum { MILLSTREAM_RX = 0, MILLSTREAM_TX = 1 };

/* Forms of samples: I and Q in turn. */
enum {
    MILLSTREAM_SC16 = 0, /* int16_t[2]: the radio's own form, and 32767 is full scale */
    MILLSTREAM_FC32 = 1  /* float[2], the same as float _Complex: 1.0 is full scale */
};

/* A moment by the radio's clock, exact: ticks since the clock began, of which rate_hz are a second. */
typedef struct millstream_time {
    uint64_t ticks;
    double rate_hz;
} millstream_time;

/* What a read returns beside its count. */
typedef struct millstream_received {
    /* Of the first sample; after MILLSTREAM_GAP of the first one behind the gap; after MILLSTREAM_LATE the time that had
     * passed. Without these its rate is 0. */
    millstream_time time;
    /* After MILLSTREAM_GAP: the missing samples of each channel, exact. 0 where the radio's clock jumped by an unknown
     * time. */
    uint64_t missing;
    /* After MILLSTREAM_GAP: "overrun" (the radio's buffer was full), "sequence" (packets were lost) or "clock_jump". */
    char cause[28];
    /* 1 when the stream has ended as millstream_start() said: nothing follows. */
    int32_t end;
} millstream_received;

/* Kinds of events. */
enum {
    MILLSTREAM_EVENT_GAP = 1,       /* received samples are missing, as a read also says */
    MILLSTREAM_EVENT_LATE = 2,      /* a start or samples came after their time: nothing was received or transmitted */
    MILLSTREAM_EVENT_UNDERFLOW = 3, /* samples to transmit were not there in time */
    MILLSTREAM_EVENT_BURST_END = 4, /* the last sample of a burst has been transmitted */
    MILLSTREAM_EVENT_SEQUENCE = 5,  /* the radio saw a packet out of sequence */
    MILLSTREAM_EVENT_LOST = 6,      /* samples to transmit were lost on their way */
    MILLSTREAM_EVENT_UNKNOWN = 7    /* the stream was set up again: samples may have been transmitted or lost */
};

typedef struct millstream_event {
    millstream_time time; /* its rate is 0 for an event without a time */
    uint64_t samples;     /* of GAP, LOST and UNKNOWN */
    int32_t kind;
    uint32_t channel; /* the position among the channels of the stream */
} millstream_event;

/* Opens a radio: "addr=192.168.10.2", or "radio=emulated" for an emulated one in this process. The keys are those of
 * Millstream's SoapySDR module (docs/guides/soapysdr.md). Close *radio in the end. */
int32_t millstream_open(const char *args, millstream_handle *radio);

/* Closes a radio, with its streams, or a stream; the number stands for nothing any more. Waits for the radio up to
 * timeout_ns. Returns 1 when the radio was told; 0 when that goes on in the background. */
int32_t millstream_close(millstream_handle handle, int64_t timeout_ns);

/* Sets one thing of a channel, counted from 0. The value is a text; numbers have a point, and may have an exponent.
 *
 *     frequency     the middle of the band, Hz       gain       dB; "auto" lets the radio set it
 *     rate          samples a second                 bandwidth  of the analogue filter, Hz
 *     antenna       such as "RX2"                    lo_offset  distance of the oscillator above the middle, Hz:
 *                                                               retunes the channel
 *
 * Of the radio, whatever the channel: clock_source, time_source, clock_rate (Hz), and add_fault for an emulated radio. A
 * value that the radio cannot have exactly becomes the nearest: ask with millstream_get(). */
int32_t millstream_set(millstream_handle radio, int32_t direction, uint32_t channel, const char *key, const char *value);

/* Reads one thing as a text, up to room bytes with the 0 at the end. Returns the length of the whole text, without the 0,
 * as snprintf does; text may be null when room is 0. Keys are those of millstream_set(), without add_fault, and:
 *
 *     frequency_range, gain_range, rate_range, bandwidth_range    two numbers, "70000000 6000000000"
 *     antennas, sensors    names, with spaces between them
 *     NAME                 a sensor of the channel or of the radio. Of the stream of a channel: ledger_expected,
 *                          ledger_delivered, ledger_lost and others
 *     channels             the number of channels of the direction
 *     type, product, serial, name, address
 */
int32_t millstream_get(millstream_handle radio, int32_t direction, uint32_t channel, const char *key, char *text,
                       size_t room);

/* Reads the radio's time. */
int32_t millstream_now(millstream_handle radio, millstream_time *time);

/* Opens a stream of count channels, whose samples are of the same moments. options is null, or a text of these, with
 * commas between them: packet=SAMPLES, queue=BYTES (of each receive channel), gaps=event (a read says where samples are
 * missing: the default), gaps=zeros (zeros stand for them) or gaps=drop (only the times show it). Close *stream. */
int32_t millstream_stream(millstream_handle radio, int32_t direction, int32_t form, const uint32_t *channels,
                          uint32_t count, const char *options, millstream_handle *stream);

/* Starts a stream, at a time or, when time is null, at once. It ends behind that number of samples, which includes
 * missing ones; 0 is without an end. */
int32_t millstream_start(millstream_handle stream, const millstream_time *time, uint64_t samples);

/* Stops a stream: what is in flight is dropped, and an open burst ends. It may be started again. */
int32_t millstream_stop(millstream_handle stream);

/* Receives up to samples samples into each buffer, one for each channel of the stream; buffers do not overlap. Returns
 * their number: fewer before a gap, at the end of the stream and at the end of timeout_ns, which may be none at all.
 *
 * A read never crosses a gap. Where samples are missing, one read returns MILLSTREAM_GAP, and *received says how many;
 * the next read goes on behind them. */
int64_t millstream_read(millstream_handle stream, void *const *buffers, size_t samples, int64_t timeout_ns,
                        millstream_received *received);

/* Transmits the samples of the buffers, one for each channel, and waits up to timeout_ns for room. Returns how many were
 * taken. time is that of the first sample, or null: then they follow the last ones, or leave at once. end_of_burst ends
 * the burst with the last sample. */
int64_t millstream_write(millstream_handle stream, const void *const *buffers, size_t samples, const millstream_time *time,
                         int32_t end_of_burst, int64_t timeout_ns);

/* Takes the oldest event of a stream that was not taken yet, waiting up to timeout_ns. Returns 1 with an event, else 0. */
int32_t millstream_next_event(millstream_handle stream, int64_t timeout_ns, millstream_event *event);

/* Returns the text of this thread's latest error. It is the library's, and stays until the next error of the thread. */
const char *millstream_error(void);

#ifdef __cplusplus
}
#endif

#endif
