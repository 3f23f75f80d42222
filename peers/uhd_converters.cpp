// Runs one of UHD's converters over standard input, through its public interface (uhd/convert.hpp):
//   uhd_converters FROM TO SCALE SAMPLES OUTPUT_BYTES
#include <uhd/convert.hpp>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <vector>

int main(int argc, char** argv) {
    if (argc != 6) return 2;
    try {
        std::vector<char> in{std::istreambuf_iterator<char>(std::cin), {}}, out(atol(argv[5]));
        in.resize(in.size() + 64);
        out.resize(out.size() + 64);
        uhd::convert::id_type id;
        id.input_format = argv[1];
        id.output_format = argv[2];
        id.num_inputs = id.num_outputs = 1;
        auto converter = uhd::convert::get_converter(id)();
        converter->set_scalar(atof(argv[3]));
        const void* from = in.data();
        void* to = out.data();
        converter->conv(uhd::ref_vector<const void*>(from), uhd::ref_vector<void*>(to), atol(argv[4]));
        std::cout.write(out.data(), atol(argv[5]));
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
