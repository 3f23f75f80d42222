// Uses the module as careless clients do: stress [TURNS] (20).
//
// `stress proof` makes an error on purpose, which a sanitizer must find. With SOAPY_STRESS_SLOW in the environment nothing
// has a limit of milliseconds.
//
// Radios are emulated in this process. Each sample of their ramp is its own time, so every sample, time and gap is
// checked exactly. It is also built with the address and with the thread sanitizer (soapy/sanitize.sh). It ends 0 if all
// is as it should be; otherwise it says what is not, and ends 1.

#include <SoapySDR/Device.hpp>
#include <SoapySDR/Errors.hpp>
#include <SoapySDR/Formats.hpp>
#include <SoapySDR/Logger.hpp>
#include <SoapySDR/Modules.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

typedef SoapySDR::Kwargs Kwargs;
typedef std::chrono::steady_clock Clock;

static const size_t PACKET = 500;
static const long long NS = 1000; // nanoseconds of a sample
static const long PATIENCE_US = 30000000;
static const long EIGHTEEN_MINUTES_US = 1L << 30;
// The longest time of a call that has to return at once, on a busy machine and under a sanitizer.
static const double PROMPT_S = 5.0;
static int turns = 20;

[[noreturn]] static void failed(const char *file, const int line, const char *what, const std::string &detail)
{
    std::fprintf(stderr, "%s:%d: not so: %s %s\n", file, line, what, detail.c_str());
    std::_Exit(1);
}
#define CHECK(what) \
    do { if (!(what)) failed(__FILE__, __LINE__, #what, ""); } while (false)
#define CHECK_IS(got, want) \
    do { \
        const long long is = (got), should = (want); \
        if (is != should) failed(__FILE__, __LINE__, #got " is " #want ":", std::to_string(is) + ", not " + std::to_string(should)); \
    } while (false)

static double since(const Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }
static void pause(const int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

static bool throws(const std::function<void()> &call)
{
    try { call(); }
    catch (const std::exception &) { return true; }
    return false;
}

struct Sample { int16_t i, q; };

// An open radio with a ramp.
struct Radio
{
    SoapySDR::Device *device;

    explicit Radio(const Kwargs &more = Kwargs())
    {
        Kwargs args{{"driver", "millstream"}, {"radio", "emulated"}, {"antenna", "ramp"}, {"rx_buffer_samples", "67108864"}};
        // Two makes with the same arguments are one device.
        static std::atomic<int> count{0};
        args["serial"] = std::to_string(++count);
        for (const auto &pair : more) args[pair.first] = pair.second;
        device = SoapySDR::Device::make(args);
        device->setSampleRate(SOAPY_SDR_RX, 0, 1e6);
    }
    ~Radio() { if (device != nullptr) SoapySDR::Device::unmake(device); }
    SoapySDR::Device *operator->() const { return device; }

    SoapySDR::Stream *open(const Kwargs &args = Kwargs(), const std::string &format = SOAPY_SDR_CS16) const
    {
        Kwargs all{{"spp", std::to_string(PACKET)}};
        for (const auto &pair : args) all[pair.first] = pair.second;
        return device->setupStream(SOAPY_SDR_RX, format, {0}, all);
    }
};

struct Read { int result, flags; long long timeNs; };

static Read read(SoapySDR::Device *device, SoapySDR::Stream *stream, std::vector<Sample> &samples, const long timeoutUs = PATIENCE_US)
{
    // What a client leaves in there means nothing.
    Read read{0, 0, -77};
    void *buffers[] = {samples.data()};
    read.result = device->readStream(stream, buffers, samples.size(), read.flags, read.timeNs, timeoutUs);
    for (int n = 0; n < read.result; n++)
    {
        const uint32_t want = uint32_t(read.timeNs / NS + n);
        const uint32_t is = uint32_t(uint16_t(samples[n].q)) << 16 | uint16_t(samples[n].i);
        if (is != want) failed(__FILE__, __LINE__, "the sample is that of its time", std::to_string(is) + " " + std::to_string(want));
    }
    return read;
}

static Kwargs fault(const std::string &text) { return Kwargs{{"fault", text}}; }

// A hundred gaps of drawn length: each packet is lost with a chance of a half, by a generator whose seed makes it a hundred.
// Reads of whole packets end exactly where gaps begin, others before: each says so.
static void gaps_are_exact()
{
    const size_t gaps = 100, lost = 202;
    for (const size_t size : {PACKET, size_t(4096), size_t(7)})
    {
        const Radio radio(fault("lose to_host data skip=20 p=0.5 seed=19 count=" + std::to_string(lost)));
        SoapySDR::Stream *stream = radio.open();
        CHECK_IS(radio->activateStream(stream), 0);
        std::vector<Sample> samples(size);
        std::vector<long long> resumes, lengths;
        long long due = -1, missing = 0;
        bool abrupt = false;
        while (resumes.size() < gaps)
        {
            const Read got = read(radio.device, stream, samples);
            CHECK((got.flags & SOAPY_SDR_HAS_TIME) != 0);
            CHECK_IS(got.result == SOAPY_SDR_OVERFLOW, abrupt);
            if (got.result == SOAPY_SDR_OVERFLOW)
            {
                resumes.push_back(got.timeNs);
                lengths.push_back((got.timeNs - due) / NS);
                CHECK(lengths.back() > 0);
                CHECK_IS((got.timeNs - due) % ((long long)PACKET * NS), 0);
                missing += lengths.back();
            }
            else
            {
                CHECK(got.result > 0 && (due < 0 || got.timeNs == due));
                CHECK((got.flags & SOAPY_SDR_END_ABRUPT) != 0 || got.result == int(size));
            }
            abrupt = (got.flags & SOAPY_SDR_END_ABRUPT) != 0;
            due = got.timeNs + (got.result > 0 ? got.result : 0) * NS;
        }
        CHECK_IS(missing, (long long)(lost * PACKET));
        CHECK_IS(std::stoll(radio->readSensor(SOAPY_SDR_RX, 0, "ledger_lost")), missing);
        CHECK(*std::max_element(lengths.begin(), lengths.end()) > 5 * *std::min_element(lengths.begin(), lengths.end()));
        for (const long long resume : resumes)
        {
            size_t mask = 0;
            int flags = 0;
            long long timeNs = 0;
            CHECK_IS(radio->readStreamStatus(stream, mask, flags, timeNs, 0), SOAPY_SDR_OVERFLOW);
            CHECK_IS(timeNs, resume);
        }
        radio->closeStream(stream);
    }
}

static void starts_and_stops()
{
    const Radio radio;
    SoapySDR::Stream *stream = radio.open();
    std::vector<Sample> samples(100);
    for (int turn = 0; turn < 10 * turns; turn++)
    {
        CHECK_IS(radio->activateStream(stream), 0);
        CHECK_IS(read(radio.device, stream, samples).result, 100);
        CHECK_IS(radio->deactivateStream(stream), 0);
    }
    // Twice the same.
    CHECK_IS(radio->deactivateStream(stream), 0);
    CHECK_IS(radio->activateStream(stream), 0);
    CHECK_IS(radio->activateStream(stream), 0);
    CHECK_IS(std::stoll(radio->readSensor(SOAPY_SDR_RX, 0, "ledger_lost")), 0);
    radio->closeStream(stream);
}

// Stop, close, or the end of the device while a thread waits for more samples than come in the length of the test.
static void ends_during_reads()
{
    for (int turn = 0; turn < turns; turn++)
    {
        for (const std::string how : {"stop", "close", "unmake"})
        {
            Radio radio;
            SoapySDR::Device *const device = radio.device;
            SoapySDR::Stream *stream = radio.open();
            std::vector<Sample> samples(size_t(1) << 22);
            CHECK_IS(device->activateStream(stream), 0);
            Read got{0, 0, 0};
            std::atomic<bool> reads{false};
            std::thread thread([&] { reads = true; got = read(device, stream, samples, EIGHTEEN_MINUTES_US); });
            while (!reads) pause(1);
            pause(turn % 20);
            const auto begin = Clock::now();
            if (how == "stop") CHECK_IS(device->deactivateStream(stream), 0);
            if (how == "close") device->closeStream(stream);
            if (how == "unmake") { radio.device = nullptr; SoapySDR::Device::unmake(device); }
            thread.join();
            CHECK(since(begin) < PROMPT_S);
            if (how == "stop") CHECK(got.result > 0 || got.result == SOAPY_SDR_TIMEOUT);
            else CHECK(got.result < 0);
            // A stream that was closed is none, whatever is asked of it.
            if (how != "close") continue;
            CHECK(read(device, stream, samples, 0).result < 0);
            CHECK(device->activateStream(stream) < 0 && device->deactivateStream(stream) < 0);
            CHECK(throws([&] { device->getStreamMTU(stream); }));
            device->closeStream(stream);
        }
    }
}

static void reads_that_have_nothing()
{
    const Radio radio;
    SoapySDR::Stream *stream = radio.open();
    std::vector<Sample> samples(100), none;
    const auto begin = Clock::now();
    // Before the start.
    CHECK_IS(read(radio.device, stream, samples, EIGHTEEN_MINUTES_US).result, SOAPY_SDR_TIMEOUT);
    CHECK_IS(read(radio.device, stream, samples, -5).result, SOAPY_SDR_TIMEOUT);
    CHECK_IS(read(radio.device, stream, none, 0).result, SOAPY_SDR_TIMEOUT);
    CHECK(since(begin) < PROMPT_S);
    CHECK_IS(radio->activateStream(stream), 0);
    CHECK_IS(read(radio.device, stream, samples).result, 100);
    // A time-out of 18 minutes lasts as long as the samples need.
    CHECK_IS(read(radio.device, stream, samples, EIGHTEEN_MINUTES_US).result, 100);
    CHECK(since(begin) < 4 * PROMPT_S);
    radio->closeStream(stream);
}

// Two threads read one stream: each sample comes once.
static void two_readers()
{
    const Radio radio;
    SoapySDR::Stream *stream = radio.open();
    CHECK_IS(radio->activateStream(stream), 0);
    std::atomic<long long> count{0};
    const auto reads = [&](const size_t size)
    {
        std::vector<Sample> samples(size);
        for (int turn = 0; turn < 20 * turns; turn++)
        {
            const Read got = read(radio.device, stream, samples);
            CHECK(got.result > 0);
            count += got.result;
        }
    };
    std::thread other(reads, 700);
    reads(300);
    other.join();
    CHECK_IS(radio->deactivateStream(stream), 0);
    CHECK_IS(std::stoll(radio->readSensor(SOAPY_SDR_RX, 0, "ledger_delivered")), count);
    radio->closeStream(stream);
}

static void wrong_arguments()
{
    const Radio radio(Kwargs{{"nonsense", "1"}});
    radio->closeStream(radio.open({{"nonsense", "1"}, {"gaps", ""}}));
    for (const auto &args : std::vector<Kwargs>{{{"gaps", "maybe"}}, {{"spp", "many"}}, {{"mtu", "-1"}}})
    {
        CHECK(throws([&] { radio.open(args); }));
    }
    CHECK(throws([&] { radio.open(Kwargs(), "CX99"); }));
    CHECK(throws([&] { radio->setupStream(SOAPY_SDR_RX, SOAPY_SDR_CS16, {99}); }));
    CHECK(throws([&] { radio->setupStream(SOAPY_SDR_RX, SOAPY_SDR_CS16, {0, 0}); }));
    CHECK(throws([&] { radio->readSensor("nonsense"); }));
    CHECK(throws([&] { radio->setFrequency(SOAPY_SDR_RX, 0, 1e15); }));
    CHECK(throws([&] { radio->setSampleRate(SOAPY_SDR_RX, 0, -1.0); }));
    CHECK(throws([&] { radio->setSampleRate(SOAPY_SDR_RX, 99, 1e6); }));
    CHECK(throws([&] { radio->writeSetting("add_fault", "nonsense"); }));
    CHECK(throws([] { SoapySDR::Device::make("driver=millstream,radio=nonsense"); }));
    CHECK(throws([] { SoapySDR::Device::make("driver=millstream,addr=nonsense"); }));
    // The stream of one channel is the only one.
    SoapySDR::Stream *stream = radio.open();
    CHECK(throws([&] { radio.open(); }));
    radio->closeStream(stream);
    // A transmit stream is not read, and a receive stream not written.
    std::vector<Sample> samples(100);
    const void *full[] = {samples.data()};
    void *empty[] = {samples.data()};
    int flags = 0;
    long long timeNs = 0;
    stream = radio.open();
    CHECK(radio->writeStream(stream, full, 100, flags) < 0);
    SoapySDR::Stream *tx = radio->setupStream(SOAPY_SDR_TX, SOAPY_SDR_CS16, {0});
    CHECK(radio->readStream(tx, empty, 100, flags, timeNs) < 0);
    radio->closeStream(tx);
    radio->closeStream(stream);
}

// Other threads search, open other radios and change settings while one reads.
static void all_at_once()
{
    const Radio radio;
    SoapySDR::Stream *stream = radio.open();
    CHECK_IS(radio->activateStream(stream), 0);
    std::atomic<bool> over{false};
    const auto until_over = [&](const std::function<void(int)> &call)
    {
        return std::thread([&over, call] { for (int turn = 0; !over; turn++) call(turn); });
    };
    std::vector<std::thread> threads;
    threads.push_back(until_over([](int) { SoapySDR::Device::enumerate("driver=millstream"); }));
    threads.push_back(until_over([](int) { CHECK_IS(SoapySDR::Device::enumerate("driver=millstream,radio=emulated").size(), 1); }));
    threads.push_back(until_over([](int) { const Radio other; CHECK(other->getHardwareKey() == "e320"); }));
    threads.push_back(until_over([&](const int turn)
    {
        radio->setGain(SOAPY_SDR_RX, 0, turn % 70);
        radio->setSampleRate(SOAPY_SDR_RX, 0, turn % 2 == 0 ? 2e6 : 1e6);
        radio->getHardwareTime();
        radio->readSensor(SOAPY_SDR_RX, 0, "ledger_delivered");
    }));
    threads.push_back(until_over([&](int)
    {
        size_t mask = 0;
        int flags = 0;
        long long timeNs = 0;
        CHECK_IS(radio->readStreamStatus(stream, mask, flags, timeNs, 1000), SOAPY_SDR_TIMEOUT);
    }));
    std::vector<Sample> samples(1000);
    void *buffers[] = {samples.data()};
    const auto begin = Clock::now();
    // Times are those of either rate, so samples are only counted.
    for (int turn = 0; turn < 20 * turns || since(begin) < 1.0; turn++)
    {
        int flags = 0;
        long long timeNs = 0;
        const int got = radio->readStream(stream, buffers, samples.size(), flags, timeNs, PATIENCE_US);
        CHECK(got > 0 || got == SOAPY_SDR_TIMEOUT);
    }
    over = true;
    for (auto &thread : threads) thread.join();
    radio->closeStream(stream);
}

static void buffers_in_place()
{
    const Radio radio;
    SoapySDR::Stream *stream = radio.open({{"mtu", "1000"}});
    CHECK_IS(radio->activateStream(stream), 0);
    const size_t all = radio->getNumDirectAccessBuffers(stream);
    size_t handle = 0;
    const void *buffers[1];
    int flags = 0;
    long long timeNs = 0;
    for (int turn = 0; turn < turns; turn++)
    {
        std::vector<size_t> held;
        for (size_t n = 0; n < all; n++)
        {
            flags = 0;
            CHECK_IS(radio->acquireReadBuffer(stream, handle, buffers, flags, timeNs, PATIENCE_US), 1000);
            const Sample *samples = static_cast<const Sample *>(buffers[0]);
            CHECK_IS(uint16_t(samples[999].i), uint16_t(timeNs / NS + 999));
            held.push_back(handle);
        }
        flags = 0;
        CHECK(radio->acquireReadBuffer(stream, handle, buffers, flags, timeNs, 0) < 0);
        for (const size_t one : held) radio->releaseReadBuffer(stream, one);
        // Numbers that nobody holds.
        radio->releaseReadBuffer(stream, held[0]);
        radio->releaseReadBuffer(stream, 1000000);
    }
    // One is held when the stream ends.
    flags = 0;
    CHECK(radio->acquireReadBuffer(stream, handle, buffers, flags, timeNs, PATIENCE_US) > 0);
    radio->closeStream(stream);
    radio->releaseReadBuffer(stream, handle);
}

static void transmits()
{
    const Radio radio(Kwargs{{"antenna", "loopback:0;delay=100"}});
    radio->setSampleRate(SOAPY_SDR_TX, 0, 1e6);
    std::vector<Sample> samples(20000, Sample{1000, -1000});
    const void *buffers[] = {samples.data()};
    for (int turn = 0; turn < turns; turn++)
    {
        SoapySDR::Stream *stream = radio->setupStream(SOAPY_SDR_TX, SOAPY_SDR_CS16, {0});
        int flags = 0;
        // Before the start it takes none.
        CHECK_IS(radio->writeStream(stream, buffers, 100, flags, 0, 1000), SOAPY_SDR_TIMEOUT);
        CHECK_IS(radio->activateStream(stream), 0);
        flags = SOAPY_SDR_END_BURST;
        CHECK_IS(radio->writeStream(stream, buffers, 3000, flags, 0, PATIENCE_US), 3000);
        CHECK(flags & SOAPY_SDR_END_BURST);
        size_t mask = 0;
        long long timeNs = 0;
        CHECK_IS(radio->readStreamStatus(stream, mask, flags, timeNs, PATIENCE_US), 0);
        CHECK(flags & SOAPY_SDR_END_BURST);
        // A thread writes for ever, until the stream is closed.
        std::thread thread([&]
        {
            for (int result = 1; result > 0;)
            {
                int none = 0;
                result = radio->writeStream(stream, buffers, samples.size(), none, 0, EIGHTEEN_MINUTES_US);
            }
        });
        pause(10 + turn % 20);
        radio->closeStream(stream);
        thread.join();
    }
}

static void writes_in_place()
{
    const Radio radio(Kwargs{{"antenna", "loopback:0;delay=100"}});
    radio->setSampleRate(SOAPY_SDR_TX, 0, 1e6);
    for (const std::string format : {SOAPY_SDR_CS16, SOAPY_SDR_CS12})
    {
        SoapySDR::Stream *tx = radio->setupStream(SOAPY_SDR_TX, format, {0}, {{"mtu", "1000"}});
        SoapySDR::Stream *rx = radio.open();
        size_t handle = 0;
        void *buffers[1];
        int flags = 0;
        // Before the start nothing leaves, and the next buffer says so.
        CHECK_IS(radio->acquireWriteBuffer(tx, handle, buffers), 1000);
        radio->releaseWriteBuffer(tx, handle, 1000, flags);
        CHECK_IS(radio->acquireWriteBuffer(tx, handle, buffers), SOAPY_SDR_TIMEOUT);
        CHECK_IS(radio->activateStream(tx), 0);
        const long long start = radio->getHardwareTime() / NS * NS + 1000000000;
        CHECK_IS(radio->activateStream(rx, SOAPY_SDR_HAS_TIME | SOAPY_SDR_END_BURST, start + 100 * NS, 5000), 0);
        for (int n = 0; n < 5000;)
        {
            const int room = radio->acquireWriteBuffer(tx, handle, buffers);
            CHECK_IS(room, 1000);
            for (int k = 0; k < room; k++, n++)
            {
                // 16 in 16 bits is 1 in 12 bits.
                const int16_t i = n % 2000 + 1, q = -(n % 1500);
                if (format == SOAPY_SDR_CS16) static_cast<Sample *>(buffers[0])[k] = {int16_t(16 * i), int16_t(16 * q)};
                else
                {
                    uint8_t *packed = static_cast<uint8_t *>(buffers[0]) + 3 * k;
                    packed[0] = i & 0xFF;
                    packed[1] = (i >> 8 & 0xF) | (q << 4 & 0xF0);
                    packed[2] = q >> 4 & 0xFF;
                }
            }
            flags = n == 1000 ? SOAPY_SDR_HAS_TIME : n == 5000 ? SOAPY_SDR_END_BURST : 0;
            radio->releaseWriteBuffer(tx, handle, room, flags, start);
            CHECK_IS(flags, n == 5000 ? SOAPY_SDR_END_BURST : 0);
        }
        std::vector<Sample> samples(5000);
        void *into[] = {samples.data()};
        long long timeNs = 0;
        flags = 0;
        CHECK_IS(radio->readStream(rx, into, 5000, flags, timeNs, PATIENCE_US), 5000);
        CHECK_IS(timeNs, start + 100 * NS);
        for (int n = 0; n < 5000; n++)
        {
            // 12 bits have another full scale: 2047.
            const int slack = format == SOAPY_SDR_CS16 ? 0 : 16;
            CHECK(std::abs(samples[n].i - 16 * (n % 2000 + 1)) <= slack && std::abs(samples[n].q + 16 * (n % 1500)) <= slack);
        }
        // All may be held at once, and no more; a number that nobody holds has no effect.
        const size_t all = radio->getNumDirectAccessBuffers(tx);
        for (size_t n = 0; n < all; n++) CHECK_IS(radio->acquireWriteBuffer(tx, handle, buffers), 1000);
        CHECK(radio->acquireWriteBuffer(tx, handle, buffers) < 0);
        flags = 0;
        radio->releaseWriteBuffer(tx, 77, 10, flags);
        radio->closeStream(tx);
        CHECK(radio->acquireWriteBuffer(tx, handle, buffers) < 0);
        radio->releaseWriteBuffer(tx, 0, 10, flags);
        radio->closeStream(rx);
    }
}

static void clocks_and_times()
{
    const Radio radio(Kwargs{{"device", "e320"}, {"rx_buffer_samples", "4194304"}});
    CHECK(radio->hasHardwareTime() && radio->hasHardwareTime("PPS") && radio->hasHardwareTime("CMD"));
    radio->setMasterClockRate(30.72e6);
    CHECK(radio->getMasterClockRate() == 30.72e6);
    CHECK(radio->getMasterClockRates().front().maximum() > 60e6);
    CHECK(throws([&] { radio->setMasterClockRate(-1.0); }));
    SoapySDR::Stream *stream = radio.open();
    radio->setFrequency(SOAPY_SDR_RX, 0, 1e9);
    const long long time = radio->getHardwareTime() + 2000000000;
    radio->setHardwareTime(time, "CMD");
    CHECK_IS(radio->getHardwareTime("CMD"), time);
    radio->setFrequency(SOAPY_SDR_RX, 0, 1.001e9);
    // Only the shift has moved.
    CHECK(std::abs(radio->getFrequency(SOAPY_SDR_RX, 0, "RF") - 1e9) < 10 && std::abs(radio->getFrequency(SOAPY_SDR_RX, 0, "BB") - 1e6) < 10);
    CHECK(throws([&] { radio->setFrequency(SOAPY_SDR_RX, 0, 2e9); }));
    CHECK(throws([&] { radio->setFrequency(SOAPY_SDR_RX, 0, "RF", 1e9); }));
    // A time that has passed.
    radio->setCommandTime(1000);
    CHECK(throws([&] { radio->setFrequency(SOAPY_SDR_RX, 0, 1.002e9); }));
    radio->setHardwareTime(0, "CMD");
    CHECK_IS(radio->getHardwareTime("CMD"), 0);
    radio->setFrequency(SOAPY_SDR_RX, 0, 2e9);
    CHECK(std::abs(radio->getFrequency(SOAPY_SDR_RX, 0, "RF") - 2e9) < 10);
    radio->closeStream(stream);
}

// A search ends soon, and so does everything that SoapySDRUtil --probe asks. The best of some times, because another
// program may have the processor at any one.
static void searches_and_descriptions_are_short()
{
    double search = 1e9, describe = 1e9;
    for (int turn = 0; turn < 60 && (search >= 0.15 || describe >= 0.2); turn++)
    {
        auto begin = Clock::now();
        SoapySDR::Device::enumerate("driver=millstream");
        search = std::min(search, since(begin));
        begin = Clock::now();
        const Radio radio(Kwargs{{"device", "e320"}, {"rx_buffer_samples", "4194304"}});
        radio->getHardwareInfo();
        for (const auto &key : radio->listSensors()) radio->readSensor(key);
        for (const int direction : {SOAPY_SDR_RX, SOAPY_SDR_TX})
        {
            for (size_t channel = 0; channel < radio->getNumChannels(direction); channel++)
            {
                radio->getStreamArgsInfo(direction, channel);
                radio->listAntennas(direction, channel);
                radio->getGainRange(direction, channel);
                radio->getFrequencyRange(direction, channel);
                radio->getSampleRateRange(direction, channel);
                radio->getBandwidthRange(direction, channel);
                for (const auto &key : radio->listSensors(direction, channel)) radio->readSensor(direction, channel, key);
            }
        }
        describe = std::min(describe, since(begin));
    }
    std::printf("search %.1f ms, opening and description %.1f ms\n", 1e3 * search, 1e3 * describe);
    std::fflush(stdout);
    // A sanitizer makes all slower.
    if (std::getenv("SOAPY_STRESS_SLOW") == nullptr) CHECK(search < 0.15 && describe < 0.2);
}

// SoapySDR unloads its modules while a stream of one runs.
static void unloading()
{
    for (int turn = 0; turn < 3; turn++)
    {
        const Radio radio;
        SoapySDR::Stream *stream = radio.open();
        CHECK_IS(radio->activateStream(stream), 0);
        std::atomic<bool> over{false};
        std::thread thread([&]
        {
            std::vector<Sample> samples(1000);
            while (!over) CHECK(read(radio.device, stream, samples).result > 0);
        });
        pause(20);
        SoapySDR::unloadModules();
        pause(20);
        SoapySDR::loadModules();
        CHECK_IS(SoapySDR::Device::enumerate("driver=millstream,radio=emulated").size(), 1);
        over = true;
        thread.join();
        radio->closeStream(stream);
    }
}

// A radio that dies or reboots: each call ends with an error, and other radios can be opened meanwhile.
static void radios_that_die()
{
    std::vector<std::thread> threads;
    for (const std::string how : {"stall ms=60000", "reboot silent_ms=60000", "reboot silent_ms=100"})
    {
        threads.emplace_back([how]
        {
            const Radio radio;
            SoapySDR::Stream *stream = radio.open();
            CHECK_IS(radio->activateStream(stream), 0);
            std::vector<Sample> samples(1000);
            CHECK_IS(read(radio.device, stream, samples).result, 1000);
            radio->writeSetting("add_fault", how);
            int result = 0;
            while ((result = read(radio.device, stream, samples).result) > 0) {}
            CHECK_IS(result, SOAPY_SDR_STREAM_ERROR);
            // Programs that go on reading get an error that they take for an end.
            CHECK_IS(read(radio.device, stream, samples, EIGHTEEN_MINUTES_US).result, SOAPY_SDR_NOT_SUPPORTED);
            CHECK(radio->activateStream(stream) < 0);
            CHECK(throws([&] { radio->setSampleRate(SOAPY_SDR_RX, 0, 2e6); }));
            radio->closeStream(stream);
        });
    }
    for (const auto &found : SoapySDR::Device::enumerate("driver=millstream,radio=emulated"))
    {
        SoapySDR::Device *const other = SoapySDR::Device::make(found);
        CHECK(other->getHardwareKey() == "e320");
        SoapySDR::Device::unmake(other);
    }
    for (auto &thread : threads) thread.join();
}

// Memory that was freed is read, and two threads write without order.
static int proof()
{
    int *volatile freed = new int(7);
    delete freed;
    volatile int shared = *freed;
    std::thread other([&] { shared = shared + 1; });
    shared = shared + 1;
    other.join();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && std::string(argv[1]) == "proof") return proof();
    if (argc > 1) turns = std::atoi(argv[1]);
    SoapySDR::setLogLevel(SOAPY_SDR_FATAL);
    const std::pair<const char *, void (*)()> all[] = {
        {"gaps are exact", gaps_are_exact},
        {"starts and stops", starts_and_stops},
        {"ends during reads", ends_during_reads},
        {"reads that have nothing", reads_that_have_nothing},
        {"two readers", two_readers},
        {"wrong arguments", wrong_arguments},
        {"all at once", all_at_once},
        {"buffers in place", buffers_in_place},
        {"transmits", transmits},
        {"writes in place", writes_in_place},
        {"clocks and times", clocks_and_times},
        {"radios that die", radios_that_die},
        {"searches", searches_and_descriptions_are_short},
        {"unloading", unloading},
    };
    for (const auto &one : all)
    {
        const auto begin = Clock::now();
        one.second();
        std::printf("%-24s %6.1f s\n", one.first, since(begin));
        std::fflush(stdout);
    }
    return 0;
}
