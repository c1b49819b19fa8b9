/* A QEMU plugin that writes every data access between trace_on() and trace_off() to a file: the
   program under test says itself what lies where, so that names can be checked against it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct tb;
struct insn;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct tb *));
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
extern size_t qemu_plugin_tb_n_insns(const struct tb *);
extern struct insn *qemu_plugin_tb_get_insn(const struct tb *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct insn *);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_vcpu_mem_cb(struct insn *, void (*)(unsigned, uint32_t, uint64_t, void *),
                                             int, int, void *);
extern unsigned qemu_plugin_mem_size_shift(uint32_t);
extern int qemu_plugin_mem_is_store(uint32_t);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static FILE *out;
static uint64_t on_at, off_at, base;
static int tracing;

struct record {
    uint64_t pc, address, value;
    uint32_t size, is_store;
};

static struct record pending;
static int has_pending;

static void finish(void)
{
    if (!has_pending)
        return;
    memcpy(&pending.value, (void *)(uintptr_t)(base + pending.address), pending.size <= 8 ? pending.size : 8);
    fwrite(&pending, sizeof pending, 1, out);
    has_pending = 0;
}

static void on_memory(unsigned cpu, uint32_t info, uint64_t address, void *pc)
{
    (void)cpu;
    if (!tracing)
        return;
    finish();
    pending.pc = (uint64_t)(uintptr_t)pc;
    pending.address = address;
    pending.value = 0;
    pending.size = 1u << qemu_plugin_mem_size_shift(info);
    pending.is_store = qemu_plugin_mem_is_store(info);
    has_pending = 1;
}

/* A record of size 0 says that a call begins. */
static void start(unsigned cpu, void *data)
{
    struct record begin = { 0 };
    (void)cpu;
    (void)data;
    fwrite(&begin, sizeof begin, 1, out);
    tracing = 1;
}


static void stop(unsigned cpu, void *data)
{
    (void)cpu;
    (void)data;
    finish();
    tracing = 0;
}

static void on_block(plugin_id id, struct tb *tb)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t pc = qemu_plugin_insn_vaddr(insn);
        if (pc == on_at)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, start, 0, NULL);
        if (pc == off_at)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, stop, 0, NULL);
        qemu_plugin_register_vcpu_mem_cb(insn, on_memory, 0, 3, (void *)(uintptr_t)pc);
    }
}

static void at_exit(plugin_id id, void *data) { (void)id; (void)data; fclose(out); }

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            return -1;
        if (!strncmp(argv[i], "out=", 4))
            out = fopen(value + 1, "wb");
        else if (!strncmp(argv[i], "on=", 3))
            on_at = strtoull(value + 1, NULL, 0);
        else if (!strncmp(argv[i], "off=", 4))
            off_at = strtoull(value + 1, NULL, 0);
        else if (!strncmp(argv[i], "base=", 5))
            base = strtoull(value + 1, NULL, 0);
    }
    if (!out)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
