// Reads from any SoapySDR driver for a while, and prints what came and what it cost: one line of JSON.
//
//   soapy_rate ARGS RATE_HZ SECONDS FORMAT [direct] [stream args]
//
// The processor time is that of the reading thread. With SOAPY_RATE_CPU=N in the environment that thread alone gets
// processor N in real time: threads of a driver that poll stop each other there.

#include <SoapySDR/Device.hpp>
#include <SoapySDR/Errors.hpp>

#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static double cpuSeconds()
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    const auto seconds = [](const struct timeval &time) { return time.tv_sec + time.tv_usec * 1e-6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

static void realTime(const bool on)
{
    const char *cpu = std::getenv("SOAPY_RATE_CPU");
    if (cpu == nullptr) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(std::atoi(cpu), &set);
    struct sched_param param = {};
    param.sched_priority = on ? 20 : 0;
    // 0 is this thread.
    if ((on && sched_setaffinity(0, sizeof(set), &set) != 0) || sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &param) != 0)
    {
        std::perror("real time");
        std::exit(3);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5) return 2;
    const double rate = std::stod(argv[2]), seconds = std::stod(argv[3]);
    const std::string format = argv[4];
    const bool direct = argc > 5 && std::strcmp(argv[5], "direct") == 0;
    const std::string more = argc > 6 ? argv[6] : "";

    SoapySDR::Device *device = SoapySDR::Device::make(std::string(argv[1]));
    device->setSampleRate(SOAPY_SDR_RX, 0, rate);
    const double actual = device->getSampleRate(SOAPY_SDR_RX, 0);
    SoapySDR::Stream *stream = device->setupStream(SOAPY_SDR_RX, format, {0}, SoapySDR::KwargsFromString(more));
    const size_t mtu = device->getStreamMTU(stream);
    // A driver that gives a packet a call gets the room for many, if it takes it.
    const size_t room = mtu > 65536 ? mtu : 65536;
    std::vector<char> memory(room * 16);
    void *buffers[] = {memory.data()};
    const void *direct_buffers[] = {nullptr};

    typedef std::chrono::steady_clock Clock;
    unsigned long long samples = 0, calls = 0, overflows = 0, errors = 0, timeouts = 0;
    long long first_ns = 0, end_ns = 0;
    bool first = true;
    realTime(true);
    device->activateStream(stream);
    // The stream settles.
    for (int call = 0; call < 20; call++)
    {
        int flags = 0;
        long long time_ns = 0;
        device->readStream(stream, buffers, room, flags, time_ns, 100000);
    }
    const double cpu = cpuSeconds();
    const auto begin = Clock::now();
    const auto until = begin + std::chrono::duration<double>(seconds);
    while (Clock::now() < until)
    {
        int flags = 0, result;
        long long time_ns = 0;
        size_t handle = 0;
        if (direct) result = device->acquireReadBuffer(stream, handle, direct_buffers, flags, time_ns, 100000);
        else result = device->readStream(stream, buffers, room, flags, time_ns, 100000);
        calls++;
        if (result > 0)
        {
            if (first) first_ns = time_ns;
            first = false;
            samples += result;
            end_ns = time_ns + (long long)(result * 1e9 / actual);
            if (direct) device->releaseReadBuffer(stream, handle);
        }
        else if (result == SOAPY_SDR_OVERFLOW) overflows++;
        else if (result == SOAPY_SDR_TIMEOUT) timeouts++;
        else errors++;
    }
    const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
    const double used = cpuSeconds() - cpu;
    realTime(false);
    device->deactivateStream(stream);
    device->closeStream(stream);
    SoapySDR::Device::unmake(device);
    std::printf("{\"rate_hz\": %.0f, \"samples\": %llu, \"wall_s\": %.3f, \"device_s\": %.3f, \"calls\": %llu, \"overflows\": %llu, "
                "\"timeouts\": %llu, \"errors\": %llu, \"cpu_s\": %.4f, \"mtu\": %zu}\n",
        actual, samples, wall, (end_ns - first_ns) * 1e-9, calls, overflows, timeouts, errors, used, mtu);
    return 0;
}
