// The SoapySDR module: SoapySDR's class over the functions of C of this folder's Rust code.
//
// Nothing is decided here. Each method passes its arguments on, and turns an error below 0 into the
// exception that SoapySDR expects of a setting, or into the result that it expects of a stream. A
// stream is its number in place of a pointer, so no thread can hold memory of a closed one.

#include <SoapySDR/Device.hpp>
#include <SoapySDR/Errors.hpp>
#include <SoapySDR/Formats.hpp>
#include <SoapySDR/Logger.hpp>
#include <SoapySDR/Registry.hpp>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// The functions of src/: see their documentation there.
extern "C" {
typedef void (*ms_text_sink)(void *out, const char *data, size_t bytes);
typedef void (*ms_number_sink)(void *out, double number);
struct ms_read_result { int64_t time_ns; int32_t flags; };
struct ms_status_result { int64_t time_ns; int32_t flags; uint32_t channel; };

void ms_last_error(void *out, ms_text_sink sink);
int ms_find(const char *const *keys, size_t count, void *out, ms_text_sink sink);
int ms_open(const char *const *keys, size_t count, uint64_t *handle, void *out, ms_text_sink sink);
int ms_close(uint64_t radio);
int ms_get_number(uint64_t radio, int dir, size_t channel, const char *name, double *value);
int ms_set_number(uint64_t radio, int dir, size_t channel, const char *name, double value, double offset);
int ms_get_range(uint64_t radio, int dir, const char *name, double *low, double *high);
int ms_get_numbers(uint64_t radio, int dir, const char *name, void *out, ms_number_sink sink);
int ms_get_texts(uint64_t radio, int dir, size_t channel, const char *name, void *out, ms_text_sink sink);
int ms_set_text(uint64_t radio, int dir, size_t channel, const char *name, const char *value);
int ms_get_sensor(uint64_t radio, int dir, size_t channel, const char *name, void *out, ms_text_sink sink);
int ms_get_time(uint64_t radio, bool pps, int64_t *time_ns);
int ms_set_time(uint64_t radio, bool pps, int64_t time_ns);
int ms_get_command_time(uint64_t radio, int64_t *time_ns);
int ms_set_command_time(uint64_t radio, int64_t time_ns);
int ms_stream_open(uint64_t radio, int dir, const size_t *channels, size_t count, const char *format,
    const char *const *keys, size_t key_count, uint64_t *stream, void *out, ms_text_sink sink);
int ms_stream_close(uint64_t stream);
int ms_stream_mtu(uint64_t stream);
int ms_stream_start(uint64_t stream, bool has_time, int64_t time_ns, size_t samples);
int ms_stream_stop(uint64_t stream);
int ms_read(uint64_t stream, void *const *buffers, size_t samples, int flags, int64_t timeout_us, ms_read_result *result);
int ms_write(uint64_t stream, const void *const *buffers, size_t samples, int flags, int64_t time_ns,
    int64_t timeout_us, ms_read_result *result);
int ms_status(uint64_t stream, int64_t timeout_us, ms_status_result *status);
int ms_acquire(uint64_t stream, size_t *number, const void **buffers, int flags, int64_t timeout_us, ms_read_result *result);
int ms_release(uint64_t stream, size_t number);
int ms_acquire_write(uint64_t stream, size_t *number, void **buffers);
int ms_release_write(uint64_t stream, size_t number, size_t samples, int *flags, int64_t time_ns);
}

namespace {

const char DRIVER[] = "millstream";
const char GAIN[] = "PGA";
// The value of a 16-bit sample that stands for 1.0.
const double FULL_SCALE = 32767.0;
// The buffers that a client may hold at once.
const size_t DIRECT_BUFFERS = 8;

typedef std::vector<std::string> Texts;
typedef SoapySDR::Kwargs Kwargs;

// What receives texts must throw nothing: its caller is not C++. Memory that ends, ends the process.
void takeText(void *out, const char *data, size_t bytes) noexcept
{
    static_cast<Texts *>(out)->push_back(data == nullptr ? std::string() : std::string(data, bytes));
}

void takeNumber(void *out, double number) noexcept
{
    static_cast<std::vector<double> *>(out)->push_back(number);
}

std::string lastError()
{
    Texts texts;
    ms_last_error(&texts, takeText);
    return texts.empty() ? "no reason was given" : texts.front();
}

// Throws the error of a failed call; returns its result otherwise.
int checked(const int result)
{
    if (result < 0) throw std::runtime_error(std::string(DRIVER) + ": " + lastError());
    return result;
}

// Keys and values as C has them.
class Pairs
{
public:
    explicit Pairs(const Kwargs &args)
    {
        for (const auto &pair : args)
        {
            _texts.push_back(pair.first.c_str());
            _texts.push_back(pair.second.c_str());
        }
    }
    const char *const *data() const { return _texts.data(); }
    size_t size() const { return _texts.size() / 2; }

private:
    std::vector<const char *> _texts;
};

void warnOfUnknown(const char *what, const Texts &keys)
{
    for (const auto &key : keys)
    {
        SoapySDR::logf(SOAPY_SDR_WARNING, "%s: the %s \"%s\" is not known and has no effect", DRIVER, what, key.c_str());
    }
}

SoapySDR::ArgInfo argument(const char *key, const char *value, SoapySDR::ArgInfo::Type type, const char *description)
{
    SoapySDR::ArgInfo info;
    info.key = info.name = key;
    info.value = value;
    info.type = type;
    info.description = description;
    return info;
}

uint64_t numberOf(SoapySDR::Stream *stream)
{
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(stream));
}

class MillstreamDevice : public SoapySDR::Device
{
public:
    explicit MillstreamDevice(const Kwargs &args)
    {
        const Pairs pairs(args);
        Texts unknown;
        checked(ms_open(pairs.data(), pairs.size(), &_radio, &unknown, takeText));
        warnOfUnknown("device argument", unknown);
    }

    ~MillstreamDevice() override { ms_close(_radio); }

    // Identity

    std::string getDriverKey() const override { return DRIVER; }

    std::string getHardwareKey() const override
    {
        const Kwargs info = getHardwareInfo();
        const auto product = info.find("product");
        return product == info.end() ? DRIVER : product->second;
    }

    Kwargs getHardwareInfo() const override
    {
        const Texts all = texts(SOAPY_SDR_RX, 0, "info");
        Kwargs info;
        for (size_t i = 0; i + 1 < all.size(); i += 2) info[all[i]] = all[i + 1];
        return info;
    }

    size_t getNumChannels(const int direction) const override { return size_t(number(direction, 0, "channels")); }
    bool getFullDuplex(const int, const size_t) const override { return true; }

    // Streams

    std::vector<std::string> getStreamFormats(const int, const size_t) const override
    {
        return {SOAPY_SDR_CF32, SOAPY_SDR_CS16, SOAPY_SDR_CS12, SOAPY_SDR_CS8, SOAPY_SDR_CF64};
    }

    std::string getNativeStreamFormat(const int, const size_t, double &fullScale) const override
    {
        fullScale = FULL_SCALE;
        return SOAPY_SDR_CS16;
    }

    SoapySDR::ArgInfoList getStreamArgsInfo(const int direction, const size_t) const override
    {
        using SoapySDR::ArgInfo;
        SoapySDR::ArgInfoList infos;
        if (direction == SOAPY_SDR_RX)
        {
            infos.push_back(argument("gaps", "event", ArgInfo::STRING,
                "what a read returns at a gap: an overflow (event), zeros for the missing samples, or nothing (drop)"));
            infos.back().options = {"event", "zeros", "drop"};
            infos.push_back(argument("recv_queue_bytes", "0", ArgInfo::INT, "the size of the receive queue; 0 is 8 MiB"));
            infos.back().units = "bytes";
        }
        infos.push_back(argument("spp", "0", ArgInfo::INT, "samples of a packet; 0 is as many as the network carries"));
        infos.push_back(argument("mtu", "0", ArgInfo::INT, "samples of a call that getStreamMTU recommends; 0 is a hundredth of a second"));
        return infos;
    }

    SoapySDR::Stream *setupStream(
        const int direction, const std::string &format, const std::vector<size_t> &channels, const Kwargs &args) override
    {
        const Pairs pairs(args);
        Texts unknown;
        uint64_t stream = 0;
        checked(ms_stream_open(_radio, direction, channels.data(), channels.size(), format.c_str(), pairs.data(),
            pairs.size(), &stream, &unknown, takeText));
        warnOfUnknown("stream argument", unknown);
        return reinterpret_cast<SoapySDR::Stream *>(static_cast<uintptr_t>(stream));
    }

    void closeStream(SoapySDR::Stream *stream) override { ms_stream_close(numberOf(stream)); }

    size_t getStreamMTU(SoapySDR::Stream *stream) const override { return size_t(checked(ms_stream_mtu(numberOf(stream)))); }

    int activateStream(SoapySDR::Stream *stream, const int flags, const long long timeNs, const size_t numElems) override
    {
        return reported(ms_stream_start(numberOf(stream), (flags & SOAPY_SDR_HAS_TIME) != 0, timeNs, numElems));
    }

    int deactivateStream(SoapySDR::Stream *stream, const int flags, const long long) override
    {
        if ((flags & SOAPY_SDR_HAS_TIME) != 0) return SOAPY_SDR_NOT_SUPPORTED;
        return reported(ms_stream_stop(numberOf(stream)));
    }

    int readStream(SoapySDR::Stream *stream, void *const *buffs, const size_t numElems, int &flags, long long &timeNs,
        const long timeoutUs) override
    {
        ms_read_result result;
        const int code = ms_read(numberOf(stream), buffs, numElems, flags, timeoutUs, &result);
        flags = result.flags;
        timeNs = result.time_ns;
        return code;
    }

    int writeStream(SoapySDR::Stream *stream, const void *const *buffs, const size_t numElems, int &flags,
        const long long timeNs, const long timeoutUs) override
    {
        ms_read_result result;
        const int code = ms_write(numberOf(stream), buffs, numElems, flags, timeNs, timeoutUs, &result);
        flags = result.flags;
        return code;
    }

    int readStreamStatus(
        SoapySDR::Stream *stream, size_t &chanMask, int &flags, long long &timeNs, const long timeoutUs) override
    {
        ms_status_result status;
        const int code = ms_status(numberOf(stream), timeoutUs, &status);
        chanMask = size_t(1) << (status.channel & 31);
        flags = status.flags;
        timeNs = status.time_ns;
        return code;
    }

    size_t getNumDirectAccessBuffers(SoapySDR::Stream *) override { return DIRECT_BUFFERS; }

    int acquireReadBuffer(SoapySDR::Stream *stream, size_t &handle, const void **buffs, int &flags, long long &timeNs,
        const long timeoutUs) override
    {
        ms_read_result result;
        const int code = ms_acquire(numberOf(stream), &handle, buffs, flags, timeoutUs, &result);
        flags = result.flags;
        timeNs = result.time_ns;
        return code;
    }

    void releaseReadBuffer(SoapySDR::Stream *stream, const size_t handle) override { ms_release(numberOf(stream), handle); }

    int acquireWriteBuffer(SoapySDR::Stream *stream, size_t &handle, void **buffs, const long) override
    {
        return ms_acquire_write(numberOf(stream), &handle, buffs);
    }

    void releaseWriteBuffer(
        SoapySDR::Stream *stream, const size_t handle, const size_t numElems, int &flags, const long long timeNs) override
    {
        ms_release_write(numberOf(stream), handle, numElems, &flags, timeNs);
    }

    // Antenna

    std::vector<std::string> listAntennas(const int direction, const size_t channel) const override
    {
        const Texts all = texts(direction, channel, "antennas");
        // Clients take the first one without asking whether there is one.
        return all.empty() ? Texts(1) : all;
    }

    void setAntenna(const int direction, const size_t channel, const std::string &name) override
    {
        if (!name.empty()) checked(ms_set_text(_radio, direction, channel, "antenna", name.c_str()));
    }

    std::string getAntenna(const int direction, const size_t channel) const override
    {
        return first(texts(direction, channel, "antenna"));
    }

    // Gain

    std::vector<std::string> listGains(const int, const size_t) const override { return {GAIN}; }

    bool hasGainMode(const int direction, const size_t channel) const override
    {
        return number(direction, channel, "has_automatic_gain") != 0.0;
    }

    void setGainMode(const int direction, const size_t channel, const bool automatic) override
    {
        // Clients switch it off everywhere.
        if (automatic || hasGainMode(direction, channel)) set(direction, channel, "automatic_gain", automatic ? 1.0 : 0.0);
    }

    bool getGainMode(const int direction, const size_t channel) const override
    {
        return number(direction, channel, "automatic_gain") != 0.0;
    }

    void setGain(const int direction, const size_t channel, const double value) override { set(direction, channel, "gain", value); }

    void setGain(const int direction, const size_t channel, const std::string &name, const double value) override
    {
        if (name != GAIN) throw std::runtime_error(std::string(DRIVER) + ": there is no gain \"" + name + "\", only " + GAIN);
        setGain(direction, channel, value);
    }

    double getGain(const int direction, const size_t channel) const override { return number(direction, channel, "gain"); }
    double getGain(const int direction, const size_t channel, const std::string &) const override
    {
        return getGain(direction, channel);
    }

    SoapySDR::Range getGainRange(const int direction, const size_t) const override { return range(direction, "gain"); }
    SoapySDR::Range getGainRange(const int direction, const size_t, const std::string &) const override
    {
        return range(direction, "gain");
    }

    // Frequency

    void setFrequency(const int direction, const size_t channel, const double frequency, const Kwargs &args) override
    {
        double offset = 0.0, given = 0.0;
        if (numeric(args, "OFFSET", given)) offset = given;
        else if (numeric(args, "RF", given)) offset = given - frequency;
        else if (numeric(args, "BB", given)) offset = -given;
        checked(ms_set_number(_radio, direction, channel, "frequency", frequency, offset));
    }

    void setFrequency(
        const int direction, const size_t channel, const std::string &name, const double frequency, const Kwargs &) override
    {
        // A frequency correction that no hardware makes.
        if (name == "CORR") return;
        set(direction, channel, ("frequency." + name).c_str(), frequency);
    }

    double getFrequency(const int direction, const size_t channel) const override
    {
        return number(direction, channel, "frequency");
    }

    double getFrequency(const int direction, const size_t channel, const std::string &name) const override
    {
        return name == "CORR" ? 0.0 : number(direction, channel, ("frequency." + name).c_str());
    }

    std::vector<std::string> listFrequencies(const int, const size_t) const override { return {"RF", "BB"}; }

    SoapySDR::RangeList getFrequencyRange(const int direction, const size_t) const override
    {
        return {range(direction, "frequency")};
    }

    SoapySDR::RangeList getFrequencyRange(const int direction, const size_t, const std::string &name) const override
    {
        return {range(direction, ("frequency." + name).c_str())};
    }

    SoapySDR::ArgInfoList getFrequencyArgsInfo(const int, const size_t) const override
    {
        SoapySDR::ArgInfoList infos;
        infos.push_back(argument("OFFSET", "0", SoapySDR::ArgInfo::FLOAT, "how far above the frequency the oscillator is tuned"));
        infos.push_back(argument("RF", "DEFAULT", SoapySDR::ArgInfo::STRING, "the frequency of the oscillator"));
        infos.push_back(argument("BB", "DEFAULT", SoapySDR::ArgInfo::STRING, "how far above the oscillator the band lies"));
        for (auto &info : infos) info.units = "Hz";
        return infos;
    }

    // Rate and bandwidth

    void setSampleRate(const int direction, const size_t channel, const double rate) override { set(direction, channel, "rate", rate); }
    double getSampleRate(const int direction, const size_t channel) const override { return number(direction, channel, "rate"); }

    std::vector<double> listSampleRates(const int direction, const size_t) const override
    {
        std::vector<double> rates;
        checked(ms_get_numbers(_radio, direction, "rates", &rates, takeNumber));
        return rates;
    }

    SoapySDR::RangeList getSampleRateRange(const int direction, const size_t) const override { return {range(direction, "rate")}; }

    void setBandwidth(const int direction, const size_t channel, const double bw) override { set(direction, channel, "bandwidth", bw); }
    double getBandwidth(const int direction, const size_t channel) const override { return number(direction, channel, "bandwidth"); }
    SoapySDR::RangeList getBandwidthRange(const int direction, const size_t) const override { return {range(direction, "bandwidth")}; }

    std::vector<double> listBandwidths(const int direction, const size_t) const override
    {
        const SoapySDR::Range all = range(direction, "bandwidth");
        std::vector<double> bandwidths;
        for (const double hz : {200e3, 500e3, 1e6, 2e6, 5e6, 10e6, 20e6, 40e6, 56e6})
        {
            if (hz >= all.minimum() && hz <= all.maximum()) bandwidths.push_back(hz);
        }
        return bandwidths;
    }

    // Clock and time

    double getMasterClockRate() const override { return number(SOAPY_SDR_RX, 0, "clock_rate"); }
    void setMasterClockRate(const double rate) override { set(SOAPY_SDR_RX, 0, "clock_rate", rate); }
    SoapySDR::RangeList getMasterClockRates() const override { return {range(SOAPY_SDR_RX, "clock_rate")}; }
    std::vector<std::string> listClockSources() const override { return texts(SOAPY_SDR_RX, 0, "clock_sources"); }
    void setClockSource(const std::string &source) override { checked(ms_set_text(_radio, SOAPY_SDR_RX, 0, "clock_source", source.c_str())); }
    std::string getClockSource() const override { return first(texts(SOAPY_SDR_RX, 0, "clock_source")); }
    std::vector<std::string> listTimeSources() const override { return texts(SOAPY_SDR_RX, 0, "time_sources"); }
    void setTimeSource(const std::string &source) override { checked(ms_set_text(_radio, SOAPY_SDR_RX, 0, "time_source", source.c_str())); }
    std::string getTimeSource() const override { return first(texts(SOAPY_SDR_RX, 0, "time_source")); }
    bool hasHardwareTime(const std::string &what) const override { return what.empty() || what == "PPS" || what == "CMD"; }

    long long getHardwareTime(const std::string &what) const override
    {
        int64_t timeNs = 0;
        checked(what == "CMD" ? ms_get_command_time(_radio, &timeNs) : ms_get_time(_radio, what == "PPS", &timeNs));
        return timeNs;
    }

    void setHardwareTime(const long long timeNs, const std::string &what) override
    {
        if (what == "CMD") checked(ms_set_command_time(_radio, timeNs));
        else checked(ms_set_time(_radio, what == "PPS" || what == "UNKNOWN_PPS", timeNs));
    }

    void setCommandTime(const long long timeNs, const std::string &) override { checked(ms_set_command_time(_radio, timeNs)); }

    // Sensors

    std::vector<std::string> listSensors() const override { return texts(SOAPY_SDR_RX, 0, "sensors"); }
    SoapySDR::ArgInfo getSensorInfo(const std::string &key) const override { return sensorInfo(-1, 0, key); }
    std::string readSensor(const std::string &key) const override { return sensor(-1, 0, key).front(); }

    std::vector<std::string> listSensors(const int direction, const size_t channel) const override
    {
        return texts(direction, channel, "channel_sensors");
    }

    SoapySDR::ArgInfo getSensorInfo(const int direction, const size_t channel, const std::string &key) const override
    {
        return sensorInfo(direction, channel, key);
    }

    std::string readSensor(const int direction, const size_t channel, const std::string &key) const override
    {
        return sensor(direction, channel, key).front();
    }

    // Settings

    SoapySDR::ArgInfoList getSettingInfo() const override
    {
        SoapySDR::ArgInfoList infos;
        if (number(SOAPY_SDR_RX, 0, "emulated") != 0.0)
        {
            // Not `fault`: GNU Radio's blocks write each device argument that is also a setting once more.
            infos.push_back(argument("add_fault", "", SoapySDR::ArgInfo::STRING, "a fault that the emulated radio has from now on"));
        }
        return infos;
    }

    void writeSetting(const std::string &key, const std::string &value) override
    {
        if (!value.empty()) checked(ms_set_text(_radio, SOAPY_SDR_RX, 0, key.c_str(), value.c_str()));
    }

    std::string readSetting(const std::string &) const override { return ""; }
    SoapySDR::ArgInfoList getSettingInfo(const int, const size_t) const override { return SoapySDR::ArgInfoList(); }

    std::string readSetting(const int direction, const size_t channel, const std::string &key) const override
    {
        return key == "last_gap" ? first(texts(direction, channel, "last_gap")) : "";
    }

private:
    uint64_t _radio = 0;

    static std::string first(const Texts &all) { return all.empty() ? "" : all.front(); }

    static bool numeric(const Kwargs &args, const char *key, double &value)
    {
        const auto found = args.find(key);
        if (found == args.end()) return false;
        char *end = nullptr;
        value = std::strtod(found->second.c_str(), &end);
        return end != found->second.c_str();
    }

    // Says in the log why a stream did not start or stop: its callers have only a number.
    static int reported(const int result)
    {
        if (result < 0) SoapySDR::logf(SOAPY_SDR_ERROR, "%s: %s", DRIVER, lastError().c_str());
        return result;
    }

    double number(const int direction, const size_t channel, const char *name) const
    {
        double value = 0.0;
        checked(ms_get_number(_radio, direction, channel, name, &value));
        return value;
    }

    void set(const int direction, const size_t channel, const char *name, const double value)
    {
        checked(ms_set_number(_radio, direction, channel, name, value, 0.0));
    }

    SoapySDR::Range range(const int direction, const char *name) const
    {
        double low = 0.0, high = 0.0;
        checked(ms_get_range(_radio, direction, name, &low, &high));
        return SoapySDR::Range(low, high);
    }

    Texts texts(const int direction, const size_t channel, const char *name) const
    {
        Texts all;
        checked(ms_get_texts(_radio, direction, channel, name, &all, takeText));
        return all;
    }

    // Its value, its unit and its kind.
    Texts sensor(const int direction, const size_t channel, const std::string &key) const
    {
        Texts reading;
        checked(ms_get_sensor(_radio, direction, channel, key.c_str(), &reading, takeText));
        reading.resize(3);
        return reading;
    }

    SoapySDR::ArgInfo sensorInfo(const int direction, const size_t channel, const std::string &key) const
    {
        using SoapySDR::ArgInfo;
        const Texts reading = sensor(direction, channel, key);
        ArgInfo info = argument(key.c_str(), reading[0].c_str(), ArgInfo::STRING, "");
        info.units = reading[1];
        if (reading[2] == "BOOLEAN") info.type = ArgInfo::BOOL;
        if (reading[2] == "INTEGER") info.type = ArgInfo::INT;
        if (reading[2] == "REALNUM") info.type = ArgInfo::FLOAT;
        return info;
    }
};

// Lists radios. It is called before each opening, by several threads, while streams run.
SoapySDR::KwargsList findMillstream(const Kwargs &args)
{
    SoapySDR::KwargsList radios;
    const Pairs pairs(args);
    Texts all;
    if (ms_find(pairs.data(), pairs.size(), &all, takeText) < 0)
    {
        SoapySDR::logf(SOAPY_SDR_ERROR, "%s: %s", DRIVER, lastError().c_str());
        return radios;
    }
    Kwargs radio;
    for (size_t i = 0; i < all.size(); i++)
    {
        if (!all[i].empty() && i + 1 < all.size())
        {
            radio[all[i]] = all[i + 1];
            i++;
            continue;
        }
        radios.push_back(radio);
        radio.clear();
    }
    return radios;
}

SoapySDR::Device *makeMillstream(const Kwargs &args)
{
    return new MillstreamDevice(args);
}

SoapySDR::Registry registration(DRIVER, &findMillstream, &makeMillstream, SOAPY_SDR_ABI_VERSION);

} // namespace
