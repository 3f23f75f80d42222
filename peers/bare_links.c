/* What the kernel's packet interfaces reach without anything around them: for each, the shortest
 * program that its manual page or the kernel's documentation suggests. A sender on CPU 0 in one
 * network namespace, a receiver on CPU 1 in another, joined by a veth pair with one queue.
 *
 *   bare_links ROW FRAME_BYTES COUNT_MS FIFO SENDER_PID RECEIVER_PID
 *
 * Prints packets received per second; for a row that begins with `swap-`, those sent back to where
 * they came from; with `trip-`, the median round trip in nanoseconds. Every frame that is
 * sent gets its header and a number of its own, in a buffer of its own, as a program's data would;
 * datagrams are made once, as those of `millstream-lab bench packets` are, but have buffers of their
 * own, too. What is answered is the packet that came. Sources: sendmmsg(2),
 * recvmmsg(2), udp(7), packet(7), packet_mmap.rst, af_xdp.rst. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64
#define HEADERS 42 /* Ethernet, IPv4, UDP */
#define MARGIN_NS 60000000ull /* before and after what is counted */
#define SILENCE_NS 30000000ull
#define TRIPS 1500
#define TRIP_SLOT 9152 /* a header, one of ours for trains, and 9018 bytes, in lines of the cache */
#define TRIP_BLOCK 131072
#define TRIP_BLOCKS 5
#define PORT 47001
#define MS(n) ((n) * 1000000ull)
#ifndef XDP_USE_SG /* not in the headers of Debian 12 */
#define XDP_USE_SG (1 << 4)
#define XDP_PKT_CONTD 1
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET /* Linux 6.18 */
#define XDP_MAX_TX_SKB_BUDGET 9
#endif
#ifndef BPF_F_XDP_HAS_FRAGS
#define BPF_F_XDP_HAS_FRAGS (1u << 5)
#endif

static const char *row;
static int frame_bytes, payload_bytes, is_receiver;
static uint64_t count_ns;
static char *const interfaces[] = {"bare-a", "bare-b"};
static const uint8_t macs[2][6] = {{2, 0x62, 0, 0, 0, 1}, {2, 0x62, 0, 0, 0, 2}};
static const char *const addresses[] = {"10.78.0.1", "10.78.0.2"};
static struct {
    atomic_int ready, over;
    double result;
} *shared;

static int has(const char *word) { return strstr(row, word) != NULL; }

static int ok(int rc, const char *what) {
    if (rc < 0) err(1, "%s, %s: %s", row, is_receiver ? "receiver" : "sender", what);
    return rc;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void set(int fd, int level, int name, int value) {
    ok(setsockopt(fd, level, name, &value, sizeof value), "setsockopt");
}

/* Counts packets between the margins; true until the sender is done and nothing has come since. */
static int count(int packets) {
    static uint64_t total, first, from, from_total, silent;
    uint64_t now = now_ns();
    total += packets;
    if (packets) silent = 0;
    if (!first && packets) first = now;
    if (first && !from && now >= first + MARGIN_NS) from = now, from_total = total;
    if (from && !shared->result && now >= from + count_ns)
        shared->result = (total - from_total) * 1e9 / (now - from);
    if (!packets && !silent) silent = now;
    return !(shared->over && !packets && now - silent > SILENCE_NS);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void write_frame(uint8_t *frame) {
    memcpy(frame, macs[!is_receiver], 6), memcpy(frame + 6, macs[is_receiver], 6);
    frame[12] = 0x88, frame[13] = 0xb5; /* local experimental */
    if (!has("-ip")) return;
    uint16_t words[] = {htons(0x4500), htons(frame_bytes - 14), 0, htons(0x4000), htons(64 << 8 | 17)};
    frame[12] = 8, frame[13] = 0;
    memcpy(frame + 14, words, 10);
    inet_pton(AF_INET, addresses[is_receiver], frame + 26);
    inet_pton(AF_INET, addresses[!is_receiver], frame + 30);
    uint32_t sum = 0;
    for (int i = 14; i < 34; i += 2) sum += frame[i] << 8 | frame[i + 1];
    sum = ~((sum & 0xffff) + (sum >> 16));
    frame[24] = sum >> 8, frame[25] = sum;
    uint16_t udp[] = {htons(PORT), htons(PORT), htons(frame_bytes - 34), 0};
    memcpy(frame + 34, udp, 8);
}

static uint64_t number; /* that the last packet carried, either way */
static uint8_t head[HEADERS];
static int head_bytes;

/* What a program does for every frame: its header, and a number behind it. */
static void stamp(uint8_t *frame) {
    memcpy(frame, head, head_bytes);
    memcpy(frame + head_bytes, &number, sizeof number);
}

/* Has a frame go back to where it came from. */
static void turn_round(uint8_t *frame) {
    uint8_t mac[6];
    memcpy(mac, frame, 6), memcpy(frame, frame + 6, 6), memcpy(frame + 6, mac, 6);
}

static void prepare_head(void) {
    uint8_t frame[HEADERS] = {0};
    write_frame(frame);
    memcpy(head, frame, head_bytes = has("-ip") ? HEADERS : 14);
}

/* ---- a round trip: one side answers what the other sends ------------------------------------- */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(uint64_t *)a, y = *(uint64_t *)b;
    return (x > y) - (x < y);
}

/* `send` sends a packet with the number; `take` takes one if one came, and its number; `answer`
 * sends one back, as it lies there, if one came. */
static void trip(void (*send)(void), int (*take)(void), void (*answer)(void)) {
    static uint64_t trips[TRIPS];
    if (is_receiver) {
        shared->ready = 1;
        while (!shared->over) answer();
        return;
    }
    for (int i = -200; i < TRIPS; i++) {
        uint64_t start = now_ns(), sent = number = i;
        send();
        while (take() == 0)
            if (now_ns() - start > MS(1000)) errx(1, "%s: no answer", row);
        if (i >= 0) trips[i] = now_ns() - start;
        if (number != sent) errx(1, "%s: %d came back as another", row, i);
    }
    qsort(trips, TRIPS, sizeof *trips, by_value);
    shared->result = trips[TRIPS / 2];
}

/* ---- UDP -------------------------------------------------------------------------------------- */

static int udp_fd;
static struct sockaddr_in udp_peer;
static char udp_bytes[8192];

static struct sockaddr_in udp_address(int side) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    inet_pton(AF_INET, addresses[side], &a.sin_addr);
    return a;
}

static void udp_open(void) {
    struct sockaddr_in local = udp_address(is_receiver);
    udp_peer = udp_address(!is_receiver);
    udp_fd = ok(socket(AF_INET, SOCK_DGRAM, 0), "socket");
    struct timeval patience = {.tv_usec = 20000};
    ok(setsockopt(udp_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), "SO_RCVTIMEO");
    set(udp_fd, SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20);
    set(udp_fd, SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20);
    ok(bind(udp_fd, (void *)&local, sizeof local), "bind");
}

static void udp_send_one(void) {
    memcpy(udp_bytes, &number, sizeof number);
    sendto(udp_fd, udp_bytes, payload_bytes, 0, (void *)&udp_peer, sizeof udp_peer);
}

static int udp_take_one(void) {
    int flags = has("spin") ? MSG_DONTWAIT : 0;
    if (recv(udp_fd, udp_bytes, sizeof udp_bytes, flags) <= 0) return 0;
    memcpy(&number, udp_bytes, sizeof number);
    return 1;
}

static void udp_answer(void) {
    if (udp_take_one()) udp_send_one();
}

static void udp(void) {
    struct mmsghdr heads[BATCH] = {0};
    struct iovec vectors[BATCH];
    int gso = has("gso"), gro = has("gro");
    udp_open();
    if (has("trip")) {
        trip(udp_send_one, udp_take_one, udp_answer);
        return;
    }
    /* A train of segments is one message; the whole of it is one IP packet. */
    int segments = !gso ? 1 : 65507 / payload_bytes < BATCH ? 65507 / payload_bytes : BATCH;
    int slot = is_receiver && !gro ? payload_bytes : is_receiver ? 65536 : segments * payload_bytes;
    int messages = gso || gro ? 8 : BATCH;
    char *bytes = malloc((size_t)messages * slot);
    memset(bytes, 0x5a, (size_t)messages * slot); /* what was never written is one page of zeros */
    for (int i = 0; i < messages; i++) {
        vectors[i] = (struct iovec){bytes + i * slot, slot};
        heads[i].msg_hdr.msg_iov = &vectors[i], heads[i].msg_hdr.msg_iovlen = 1;
        if (!is_receiver) heads[i].msg_hdr.msg_name = &udp_peer,
                          heads[i].msg_hdr.msg_namelen = sizeof udp_peer;
    }
    if (!is_receiver) {
        if (gso) set(udp_fd, SOL_UDP, UDP_SEGMENT, payload_bytes);
        for (uint64_t end = now_ns() + 2 * MARGIN_NS + count_ns; now_ns() < end;)
            ok(sendmmsg(udp_fd, heads, messages, 0), "sendmmsg");
        return;
    }
    if (gro) set(udp_fd, SOL_UDP, UDP_GRO, 1);
    shared->ready = 1;
    for (int came = 0, packets = 0; count(packets);) {
        came = recvmmsg(udp_fd, heads, messages, has("spin") ? MSG_DONTWAIT : MSG_WAITFORONE, NULL);
        packets = came < 0 ? 0 : came;
        if (gro)
            for (int i = packets = 0; i < came; i++) packets += heads[i].msg_len / payload_bytes;
    }
}

/* ---- AF_PACKET -------------------------------------------------------------------------------- */

#define SLOTS 4096 /* as many as a link of ours has */

static int packet_fd, packet_next, packet_slots, packet_slot_bytes;
static uint8_t *packet_ring, packet_frame[16384];

static int packet_open(int receive) {
    uint16_t type = htons(has("-ip") ? ETH_P_IP : 0x88b5);
    struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_protocol = receive ? type : 0,
                            .sll_ifindex = if_nametoindex(interfaces[is_receiver])};
    int fd = ok(socket(AF_PACKET, SOCK_RAW, 0), "socket");
    ok(bind(fd, (void *)&a, sizeof a), "bind");
    return fd;
}

/* Maps a receive ring of at least so many slots of so many bytes. */
static int packet_map(int slots, int slot_bytes) {
    int fd = packet_open(1), each = TRIP_BLOCK / slot_bytes, blocks = (slots + each - 1) / each;
    struct tpacket_req request = {.tp_block_size = TRIP_BLOCK, .tp_block_nr = blocks,
                                  .tp_frame_size = slot_bytes, .tp_frame_nr = each * blocks};
    size_t bytes = (size_t)TRIP_BLOCK * blocks;
    set(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2);
    ok(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request), "ring");
    packet_ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_LOCKED, fd, 0);
    ok(packet_ring == MAP_FAILED ? -1 : 0, "mmap");
    packet_slots = request.tp_frame_nr, packet_slot_bytes = slot_bytes;
    return fd;
}

static void packet_send_batch(int fd) {
    struct mmsghdr heads[BATCH] = {0};
    uint8_t *bytes = calloc(BATCH, frame_bytes);
    struct iovec vectors[BATCH];
    for (int i = 0; i < BATCH; i++) {
        vectors[i] = (struct iovec){bytes + i * frame_bytes, frame_bytes};
        heads[i].msg_hdr.msg_iov = &vectors[i], heads[i].msg_hdr.msg_iovlen = 1;
    }
    set(fd, SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20);
    for (uint64_t end = now_ns() + 2 * MARGIN_NS + count_ns; now_ns() < end;) {
        for (int i = 0; i < BATCH; i++, number++) stamp(bytes + i * frame_bytes);
        if (sendmmsg(fd, heads, BATCH, 0) < 0 && errno != ENOBUFS) ok(-1, "sendmmsg");
    }
}

static void packet_send_one(void) {
    stamp(packet_frame);
    send(packet_fd, packet_frame, frame_bytes, 0);
}

static struct tpacket2_hdr *packet_look(void) {
    int each = TRIP_BLOCK / packet_slot_bytes, block = packet_next / each, slot = packet_next % each;
    struct tpacket2_hdr *from =
        (void *)(packet_ring + (size_t)block * TRIP_BLOCK + (size_t)slot * packet_slot_bytes);
    if (!(atomic_load((_Atomic uint32_t *)&from->tp_status) & TP_STATUS_USER)) return NULL;
    packet_next = (packet_next + 1) % packet_slots;
    return from;
}

static void packet_free(struct tpacket2_hdr *slot) {
    atomic_store_explicit((_Atomic uint32_t *)&slot->tp_status, TP_STATUS_KERNEL, memory_order_release);
}

static int packet_take_one(void) {
    struct tpacket2_hdr *from = packet_look();
    if (!from) return 0;
    memcpy(&number, (uint8_t *)from + from->tp_mac + 14, sizeof number);
    packet_free(from);
    return 1;
}

static void packet_answer(void) {
    struct tpacket2_hdr *from = packet_look();
    if (!from) return;
    uint8_t *frame = (uint8_t *)from + from->tp_mac;
    turn_round(frame);
    send(packet_fd, frame, from->tp_snaplen, 0);
    packet_free(from);
}

static void packet_receive(void) {
    struct pollfd wait = {.fd = packet_map(SLOTS, (frame_bytes + 90) / 64 * 64 + 64), .events = POLLIN};
    shared->ready = 1;
    for (int packets = 0; count(packets);) {
        struct tpacket2_hdr *from;
        for (packets = 0; packets < BATCH && (from = packet_look()); packet_free(from))
            packets += from->tp_len == (uint32_t)frame_bytes;
        if (!packets) poll(&wait, 1, 20);
    }
}

static void packet(void) {
    if (has("trip")) {
        int fd = packet_map(TRIP_BLOCK / TRIP_SLOT * TRIP_BLOCKS, TRIP_SLOT);
        set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
        packet_fd = packet_open(0);
        set(packet_fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
        trip(packet_send_one, packet_take_one, packet_answer);
        return;
    }
    if (is_receiver) {
        packet_receive();
        return;
    }
    int fd = packet_open(0);
    set(fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
    packet_send_batch(fd);
}

/* ---- AF_XDP ----------------------------------------------------------------------------------- */

#define CHUNK 4096
#define RING 2048 /* entries of each ring, and half of the chunks: the rest is for sending */

static struct ring {
    _Atomic uint32_t *producer, *consumer, *flags;
    void *entries;
    uint32_t at;
} rx, tx, fill, done;
static int xdp_fd, xdp_parts, xdp_trips;
static uint8_t *umem;
static uint64_t spare[RING];
static int spares;

static void xdp_map(struct ring *ring, struct xdp_ring_offset *at, off_t offset, size_t entry) {
    uint8_t *m = mmap(NULL, at->desc + RING * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      xdp_fd, offset);
    ok(m == MAP_FAILED ? -1 : 0, "mmap");
    ring->producer = (void *)(m + at->producer), ring->consumer = (void *)(m + at->consumer);
    ring->flags = (void *)(m + at->flags), ring->entries = m + at->desc;
}

static int bpf(int command, union bpf_attr *attr, const char *what) {
    return ok(syscall(SYS_bpf, command, attr, sizeof *attr), what);
}

/* return bpf_redirect_map(&map, ctx->rx_queue_index, XDP_PASS), attached by a link. */
static void xdp_attach(int index) {
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1};
    int map_fd = bpf(BPF_MAP_CREATE, &map, "BPF_MAP_CREATE"), key = 0;
    struct bpf_insn code[] = {
        {BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, 16, 0},
        {BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd}, {0},
        {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, XDP_PASS},
        {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map}, {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
    union bpf_attr load = {.prog_type = BPF_PROG_TYPE_XDP, .insns = (uintptr_t)code,
                           .insn_cnt = sizeof code / sizeof *code, .license = (uintptr_t) "GPL",
                           .prog_flags = BPF_F_XDP_HAS_FRAGS, .expected_attach_type = BPF_XDP};
    int program = bpf(BPF_PROG_LOAD, &load, "BPF_PROG_LOAD");
    union bpf_attr link = {.link_create = {.prog_fd = program, .target_ifindex = index,
        .attach_type = BPF_XDP, .flags = has("native") ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE}};
    bpf(BPF_LINK_CREATE, &link, "BPF_LINK_CREATE");
    union bpf_attr entry = {.map_fd = map_fd, .key = (uintptr_t)&key, .value = (uintptr_t)&xdp_fd};
    bpf(BPF_MAP_UPDATE_ELEM, &entry, "BPF_MAP_UPDATE_ELEM");
}

static void xdp_open(int receive) {
    int index = if_nametoindex(interfaces[is_receiver]);
    size_t bytes = 2ul * RING * CHUNK;
    umem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    xdp_fd = ok(socket(AF_XDP, SOCK_RAW, 0), "socket");
    struct xdp_umem_reg registration = {.addr = (uintptr_t)umem, .len = bytes, .chunk_size = CHUNK};
    ok(setsockopt(xdp_fd, SOL_XDP, XDP_UMEM_REG, &registration, sizeof registration), "XDP_UMEM_REG");
    int rings[] = {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING};
    for (int i = 0; i < 4; i++) set(xdp_fd, SOL_XDP, rings[i], RING);
    int budget = 256; /* frames that one call may send; kernels without the option: 32 */
    (void)!setsockopt(xdp_fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof budget);
    struct xdp_mmap_offsets at;
    socklen_t length = sizeof at;
    ok(getsockopt(xdp_fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &length), "XDP_MMAP_OFFSETS");
    xdp_map(&rx, &at.rx, XDP_PGOFF_RX_RING, sizeof(struct xdp_desc));
    xdp_map(&tx, &at.tx, XDP_PGOFF_TX_RING, sizeof(struct xdp_desc));
    xdp_map(&fill, &at.fr, XDP_UMEM_PGOFF_FILL_RING, 8);
    xdp_map(&done, &at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, 8);
    struct sockaddr_xdp a = {.sxdp_family = AF_XDP, .sxdp_ifindex = index,
                             .sxdp_flags = XDP_COPY | XDP_USE_NEED_WAKEUP | XDP_USE_SG};
    ok(bind(xdp_fd, (void *)&a, sizeof a), "bind");
    for (int i = 0; i < RING; i++) {
        ((uint64_t *)fill.entries)[i] = (uint64_t)i * CHUNK;
        spare[spares++] = (uint64_t)(RING + i) * CHUNK;
    }
    *fill.producer = fill.at = RING;
    if (receive) xdp_attach(index);
    xdp_trips = has("trip");
    xdp_parts = (frame_bytes + CHUNK - 1) / CHUNK;
}

/* Hands what came back to the fill ring at once; how many frames that was. */
static int xdp_take(void) {
    int frames = 0;
    uint32_t producer = atomic_load_explicit(rx.producer, memory_order_acquire);
    for (int i = 0; i < BATCH && rx.at != producer; i++) {
        struct xdp_desc *d = (struct xdp_desc *)rx.entries + rx.at++ % RING;
        ((uint64_t *)fill.entries)[fill.at++ % RING] = d->addr & ~(uint64_t)(CHUNK - 1);
        frames += !(d->options & XDP_PKT_CONTD);
        memcpy(&number, umem + d->addr + 14, xdp_trips ? sizeof number : 0);
    }
    atomic_store_explicit(rx.consumer, rx.at, memory_order_release);
    atomic_store_explicit(fill.producer, fill.at, memory_order_release);
    return frames;
}

static void xdp_tell(void) {
    if (*tx.flags & XDP_RING_NEED_WAKEUP) sendto(xdp_fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
}

static void xdp_send(int frames) {
    for (uint32_t end = atomic_load_explicit(done.producer, memory_order_acquire); done.at != end;)
        spare[spares++] = ((uint64_t *)done.entries)[done.at++ % RING];
    atomic_store_explicit(done.consumer, done.at, memory_order_release);
    uint32_t consumer = atomic_load_explicit(tx.consumer, memory_order_acquire);
    for (; frames > 0 && spares >= xdp_parts && tx.at - consumer + xdp_parts <= RING; frames--) {
        stamp(umem + spare[spares - 1]);
        number += !xdp_trips;
        for (int left = frame_bytes; left > 0; left -= CHUNK) {
            int length = left < CHUNK ? left : CHUNK;
            ((struct xdp_desc *)tx.entries)[tx.at++ % RING] =
                (struct xdp_desc){spare[--spares], length, left > CHUNK ? XDP_PKT_CONTD : 0};
        }
    }
    atomic_store_explicit(tx.producer, tx.at, memory_order_release);
    xdp_tell();
}

/* Sends every frame back as it lies there; its buffers are received into again when they have
 * left. Frames for which there is no room are received into at once. How many were sent. */
static int xdp_turn(void) {
    int frames = 0;
    uint32_t end = atomic_load_explicit(done.producer, memory_order_acquire);
    for (; done.at != end; done.at++)
        ((uint64_t *)fill.entries)[fill.at++ % RING] =
            ((uint64_t *)done.entries)[done.at % RING] & ~(uint64_t)(CHUNK - 1);
    atomic_store_explicit(done.consumer, done.at, memory_order_release);
    uint32_t producer = atomic_load_explicit(rx.producer, memory_order_acquire);
    uint32_t consumer = atomic_load_explicit(tx.consumer, memory_order_acquire);
    static int first = 1, room;
    for (int i = 0; i < BATCH && rx.at != producer; i++) {
        struct xdp_desc *d = (struct xdp_desc *)rx.entries + rx.at++ % RING;
        if (first) room = tx.at - consumer + xdp_parts <= RING;
        if (first && room) turn_round(umem + d->addr);
        first = !(d->options & XDP_PKT_CONTD);
        if (room) ((struct xdp_desc *)tx.entries)[tx.at++ % RING] = *d, frames += first;
        else ((uint64_t *)fill.entries)[fill.at++ % RING] = d->addr & ~(uint64_t)(CHUNK - 1);
    }
    atomic_store_explicit(rx.consumer, rx.at, memory_order_release);
    atomic_store_explicit(fill.producer, fill.at, memory_order_release);
    atomic_store_explicit(tx.producer, tx.at, memory_order_release);
    xdp_tell();
    return frames;
}

static void xdp_send_one(void) { xdp_send(1); }

static void xdp_answer(void) { xdp_turn(); }

static void xdp(void) {
    struct pollfd wait = {.events = POLLIN};
    int swaps = has("swap");
    xdp_open(is_receiver || has("trip") || swaps);
    wait.fd = xdp_fd;
    if (has("trip")) {
        trip(xdp_send_one, xdp_take, xdp_answer);
    } else if (!is_receiver) {
        for (uint64_t end = now_ns() + 2 * MARGIN_NS + count_ns; now_ns() < end;) {
            xdp_send(BATCH);
            /* What came back is received, or its ring would be full and dropping. */
            for (int looks = 4; swaps && looks > 0 && xdp_take() > 0; looks--) {}
        }
    } else {
        shared->ready = 1;
        for (int packets = 0; count(packets);) {
            packets = swaps ? xdp_turn() : xdp_take();
            if (packets == 0 && has("poll")) poll(&wait, 1, 20);
        }
    }
}

/* ---- both sides ------------------------------------------------------------------------------- */

static void side(const char *pid, int fifo) {
    char path[64];
    cpu_set_t cpus;
    struct sched_param priority = {.sched_priority = fifo};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    ok(setns(ok(open(path, O_RDONLY), path), CLONE_NEWNET), "setns");
    CPU_ZERO(&cpus);
    CPU_SET(is_receiver, &cpus);
    ok(sched_setaffinity(0, sizeof cpus, &cpus), "sched_setaffinity");
    if (fifo) ok(sched_setscheduler(0, SCHED_FIFO, &priority), "SCHED_FIFO");
    while (!is_receiver && !shared->ready) usleep(1000);
    prepare_head();
    if (has("udp")) udp();
    else if (has("packet")) packet();
    else xdp();
    exit(0);
}

int main(int argc, char **argv) {
    if (argc != 7) errx(2, "usage: bare_links ROW FRAME_BYTES COUNT_MS FIFO SENDER_PID RECEIVER_PID");
    row = argv[1], frame_bytes = atoi(argv[2]), payload_bytes = frame_bytes - HEADERS;
    count_ns = MS(atoi(argv[3]));
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[2];
    for (is_receiver = 1; is_receiver >= 0; is_receiver--)
        if ((pids[is_receiver] = ok(fork(), "fork")) == 0) side(argv[5 + is_receiver], atoi(argv[4]));
    int status, failed = 0;
    for (int i = 0; i < 2; i++) {
        pid_t ended = wait(&status);
        failed |= status;
        if (ended == pids[0] || status) shared->over = 1;
        if (status) kill(pids[ended == pids[0]], SIGKILL);
    }
    if (failed || shared->result <= 0) errx(1, "%s: nothing counted", row);
    printf("%.0f\n", shared->result);
    return 0;
}
