// A simulation over many particles: `particles [COUNT [STEPS]]`. A step reads and writes the position, the velocity and `alive`; the other
// members serve the report at the end.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Particle {
    std::uint64_t id = 0;
    double x = 0;
    double y = 0;
    double z = 0;
    double vx = 0;
    double vy = 0;
    double vz = 0;
    // What the particle is called in the report.
    char label[32] = {};
    double charge = 1.0;
    double mass = 1.0; // kg
    std::uint32_t source = 0;
    std::uint32_t colour = 0;
    std::uint64_t made_at = 0;
    bool alive = true;
    std::uint64_t parent = 0;
};

static std::uint64_t random_state = 88172645463325252u;

static double random_number() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return static_cast<double>(random_state >> 11) * (1.0 / 9007199254740992.0);
}

static Particle make(std::uint64_t number) {
    Particle made;
    made.id = number;
    made.x = random_number();
    made.y = random_number();
    made.z = random_number();
    made.vx = random_number() - 0.5;
    made.vy = random_number() - 0.5;
    made.vz = random_number() - 0.5;
    std::snprintf(made.label, sizeof made.label, "p%llu", static_cast<unsigned long long>(number));
    made.mass = 1.0 + random_number();
    made.charge = made.mass / 2;
    made.source = static_cast<std::uint32_t>(number % 7);
    made.colour = made.source * 3;
    made.made_at = number * 10;
    made.parent = number / 2;
    return made;
}

__attribute__((noinline)) void step(std::vector<Particle> &all, double seconds) {
    for (Particle &one : all) {
        if (!one.alive) {
            continue;
        }
        one.x += one.vx * seconds;
        one.y += one.vy * seconds;
        one.z += one.vz * seconds;
        if (one.x < -40 || one.x > 40) {
            one.alive = false;
        }
    }
}

int main(int argc, char **argv) {
    const int particles = argc > 1 ? std::atoi(argv[1]) : 200000;
    const int steps = argc > 2 ? std::atoi(argv[2]) : 40;
    std::vector<Particle> all;
    all.reserve(static_cast<std::size_t>(particles));
    for (int number = 0; number < particles; number++) {
        all.push_back(make(static_cast<std::uint64_t>(number)));
    }
    for (int round = 0; round < steps; round++) {
        step(all, 0.01);
    }
    double energy = 0;
    std::uint64_t colours = 0;
    for (const Particle &one : all) {
        energy += one.mass * (one.vx * one.vx + one.vy * one.vy + one.vz * one.vz) / 2 + one.charge * one.x;
        colours += one.colour + one.source + one.made_at + one.parent + one.id;
    }
    Particle last = all.back();
    last.mass *= 2;
    std::printf("%.9f %llu %s %.3f %.3f\n", energy, static_cast<unsigned long long>(colours), last.label, last.mass,
                all.back().mass);
    return 0;
}
