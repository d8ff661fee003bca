// C++ file streams: formatted and raw, at random places, in every mode.
//
//   streams FILE
#include <cstdio>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    std::string path = argv[1];
    std::mt19937 random(7);
    {
        std::ofstream out(path);
        for (int i = 0; i < 20000; i++) out << i << ' ' << i * 0.5 << '\n';
    }
    {
        std::ofstream out(path, std::ios::app | std::ios::binary);
        std::vector<char> block(200000);
        for (size_t i = 0; i < block.size(); i++) block[i] = static_cast<char>(i * 17 + i / 256);
        out.write(block.data(), block.size());
        std::cout << "appended to " << out.tellp() << '\n';
    }
    {
        std::fstream both(path, std::ios::in | std::ios::out | std::ios::binary);
        unsigned long sum = 0;
        for (int i = 0; i < 500; i++) {
            auto at = random() % 400000;
            char text[300];
            both.seekg(at);
            both.read(text, 1 + random() % 299);
            for (int j = 0; j < both.gcount(); j++) sum = sum * 31 + static_cast<unsigned char>(text[j]);
            both.clear();
            both.seekp(random() % 300000);
            both << "<" << i << ">";
        }
        std::cout << "sum " << sum << '\n';
    }
    {
        std::ifstream in(path);
        std::string line;
        size_t lines = 0, bytes = 0;
        while (std::getline(in, line)) lines++, bytes += line.size();
        std::cout << lines << " lines, " << bytes << " bytes\n";
        std::ifstream whole(path, std::ios::binary);
        std::stringstream copy;
        copy << whole.rdbuf();
        std::cout << copy.str().size() << " bytes at once\n";
    }
    std::ofstream exclusive(path, std::ios::out | std::ios::trunc);
    exclusive << "short\n";
    exclusive.close();
    std::ofstream missing("/nonexistent/directory/file");
    std::cout << (missing ? "opened" : "refused") << '\n';
}
