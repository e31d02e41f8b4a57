// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/tsc.h>

#include "files.h"

#define LONGEST_START (1 << 20)
#define LONGEST_PART (1 << 18)
#define LONGEST_CHANGE (1 << 13)

static struct proc_dir_entry *folder;

/* One writer, reader or start at a time. */
static DEFINE_MUTEX(mutex);
static char *start_text;
static size_t start_length;
/* Parts of a status that Rust has written. */
static char *part_text;
static char died[512];
/* What sched_ext has dumped when it last ended a policy. */
static char *dump;

/* Complete records are [tail, complete); what is being written ends at head. All count up, and the
 * place in the buffer is the rest of a division by its size. */
static struct {
	char *bytes;
	u64 size, head, complete, tail, lost;
	bool full;
} record;

void anysched_log_write(const char *bytes, u64 length)
{
	u64 at, first;

	if (!record.size || record.full)
		return;
	if (record.head + length - READ_ONCE(record.tail) > record.size) {
		record.full = true;
		return;
	}
	at = record.head % record.size;
	first = min(length, record.size - at);
	memcpy(record.bytes + at, bytes, first);
	memcpy(record.bytes, bytes + first, length - first);
	record.head += length;
}

void anysched_log_record_ends(void)
{
	if (record.full) {
		/* What follows a loss means nothing: the log ends before it. */
		record.head = record.complete;
		record.lost++;
	} else {
		smp_store_release(&record.complete, record.head);
	}
}

void anysched_log_ends(void)
{
	if (!record.full)
		smp_store_release(&record.complete, record.head);
}

void anysched_files_died(const char *why)
{
	if (!died[0])
		strscpy(died, why, sizeof(died));
}

void anysched_files_dump(const char *text)
{
	mutex_lock(&mutex);
	strscpy(dump, text, LONGEST_PART);
	mutex_unlock(&mutex);
}

/* The size that a line "record BYTES" of the start text asks for. */
static u64 log_size(void)
{
	const char *line = strnstr(start_text, "\nrecord ", start_length);
	u64 size = 0;

	while (line && line[8] >= '0' && line[8] <= '9')
		size = size * 10 + *(line++ + 8) - '0';
	return size;
}

int anysched_files_prepare(struct call *c)
{
	int err = 0;
	u64 size;

	mutex_lock(&mutex);
	died[0] = dump[0] = 0;
	if (!start_text) {
		err = -EINVAL;
		goto out;
	}
	size = log_size();
	if (size != record.size) {
		vfree(record.bytes);
		record.bytes = size ? vmalloc(size) : NULL;
		record.size = record.bytes ? size : 0;
		if (size && !record.bytes)
			err = -ENOMEM;
	}
	record.head = record.complete = record.tail = record.lost = 0;
	record.full = false;
	c->text = start_text;
	c->text_len = start_length;
out:
	mutex_unlock(&mutex);
	return err;
}

static ssize_t start_write(struct file *file, const char __user *from, size_t length, loff_t *at)
{
	char *text;

	if (*at || length > LONGEST_START)
		return -EFBIG;
	text = vmalloc(length + 1);
	if (!text)
		return -ENOMEM;
	if (copy_from_user(text, from, length)) {
		vfree(text);
		return -EFAULT;
	}
	text[length] = 0;
	mutex_lock(&mutex);
	swap(text, start_text);
	start_length = length;
	mutex_unlock(&mutex);
	vfree(text);
	*at = length;
	return length;
}

/* A text as the rest of a line: as anysched-wire's escape::rest. */
static void put_rest(struct seq_file *m, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			seq_puts(m, "\\n");
		else if (*text == '\\')
			seq_puts(m, "\\\\");
		else if ((unsigned char)*text < ' ' || *text == 0x7f)
			seq_putc(m, '?');
		else
			seq_putc(m, *text);
	}
	seq_putc(m, '\n');
}

/* Position 0 is what C knows; the others are parts that Rust knows. */
static void *status_part(struct seq_file *m, loff_t at)
{
	u32 length = LONGEST_PART;

	if (!at)
		return SEQ_START_TOKEN;
	if (!anysched_status(at - 1, part_text, &length))
		return NULL;
	part_text[length] = 0;
	return part_text;
}

static void *status_start(struct seq_file *m, loff_t *at)
{
	mutex_lock(&mutex);
	return status_part(m, *at);
}

static void *status_next(struct seq_file *m, void *part, loff_t *at)
{
	return status_part(m, ++*at);
}

static void status_stop(struct seq_file *m, void *part) { mutex_unlock(&mutex); }

static u64 ns(u64 cycles) { return mul_u64_u64_div_u64(cycles, 1000000, max(tsc_khz, 1U)); }

/* What each CPU runs. */
static void put_running(struct seq_file *m)
{
	struct running r;
	char *c;
	int cpu;

	for_each_online_cpu(cpu) {
		if (!anysched_running_on(cpu, &r))
			continue;
		/* Names may hold any bytes; a status is UTF-8. */
		for (c = r.name; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = '?';
		seq_printf(m, "runs %d %u %d ", cpu, r.task, r.pid);
		put_rest(m, r.name[0] ? r.name : "?");
	}
}

static int status_show(struct seq_file *m, void *part)
{
	struct statistics *s = &anysched_statistics;

	if (part != SEQ_START_TOKEN) {
		seq_puts(m, part);
		return 0;
	}
	seq_puts(m, "anysched-status 1\n");
	if (died[0]) {
		seq_puts(m, "dead ");
		put_rest(m, died);
	}
	if (!s->calls)
		seq_puts(m, "idle\n");
	else
		seq_printf(m, "calls %llu %llu %llu\n", s->calls, ns(s->time), ns(s->longest));
	if (record.size)
		seq_printf(m, "log %llu %llu %llu\n", record.complete - record.tail, record.size, record.lost);
	put_running(m);
	return 0;
}

static const struct seq_operations status_parts = {
	.start = status_start, .next = status_next, .stop = status_stop, .show = status_show,
};

static int status_open(struct inode *inode, struct file *file) { return seq_open(file, &status_parts); }

/* Takes complete records out of the buffer; 0 if there are none. */
static ssize_t log_read(struct file *file, char __user *to, size_t length, loff_t *at)
{
	ssize_t read = 0;
	u64 place, first;

	mutex_lock(&mutex);
	length = min_t(u64, length, smp_load_acquire(&record.complete) - record.tail);
	if (length) {
		place = record.tail % record.size;
		first = min_t(u64, length, record.size - place);
		if (copy_to_user(to, record.bytes + place, first) ||
		    copy_to_user(to + first, record.bytes, length - first)) {
			read = -EFAULT;
		} else {
			read = length;
			WRITE_ONCE(record.tail, record.tail + length);
		}
	}
	mutex_unlock(&mutex);
	return read;
}

static int dump_show(struct seq_file *m, void *unused)
{
	mutex_lock(&mutex);
	seq_puts(m, dump);
	mutex_unlock(&mutex);
	return 0;
}

static int dump_open(struct inode *inode, struct file *file) { return single_open(file, dump_show, NULL); }

/* Who has opened `change` writes what is to change and reads the answer. */
struct change {
	u32 length;
	char text[LONGEST_CHANGE];
};

static int change_open(struct inode *inode, struct file *file)
{
	file->private_data = vzalloc(sizeof(struct change));
	return file->private_data ? 0 : -ENOMEM;
}

static ssize_t change_write(struct file *file, const char __user *from, size_t length, loff_t *at)
{
	struct change *c = file->private_data;
	ssize_t written = length;

	if (length > sizeof(c->text))
		return -EFBIG;
	mutex_lock(&mutex);
	c->length = length;
	if (copy_from_user(c->text, from, length)) {
		c->length = 0;
		written = -EFAULT;
	} else if (!anysched_change(c->text, &c->length, sizeof(c->text))) {
		written = -ESRCH;
	}
	mutex_unlock(&mutex);
	*at = 0;
	return written;
}

static ssize_t change_read(struct file *file, char __user *to, size_t length, loff_t *at)
{
	struct change *c = file->private_data;
	ssize_t read;

	mutex_lock(&mutex);
	read = simple_read_from_buffer(to, length, at, c->text, c->length);
	mutex_unlock(&mutex);
	return read;
}

static int change_release(struct inode *inode, struct file *file)
{
	vfree(file->private_data);
	return 0;
}

static const struct proc_ops dump_file = {
	.proc_open = dump_open, .proc_read = seq_read, .proc_lseek = seq_lseek,
	.proc_release = single_release,
};
static const struct proc_ops start_file = { .proc_write = start_write };
static const struct proc_ops status_file = {
	.proc_open = status_open, .proc_read = seq_read, .proc_lseek = seq_lseek,
	.proc_release = seq_release,
};
static const struct proc_ops log_file = { .proc_read = log_read };
static const struct proc_ops change_file = {
	.proc_open = change_open, .proc_read = change_read, .proc_write = change_write,
	.proc_release = change_release,
};

int anysched_files_make(void)
{
	part_text = vmalloc(LONGEST_PART + 1);
	dump = vzalloc(LONGEST_PART);
	folder = part_text && dump ? proc_mkdir("anysched", NULL) : NULL;
	if (folder && proc_create("start", 0200, folder, &start_file) &&
	    proc_create("status", 0444, folder, &status_file) &&
	    proc_create("dump", 0400, folder, &dump_file) &&
	    proc_create("log", 0400, folder, &log_file) &&
	    proc_create("change", 0600, folder, &change_file))
		return 0;
	anysched_files_remove();
	return -ENOMEM;
}

void anysched_files_remove(void)
{
	proc_remove(folder);
	vfree(part_text);
	vfree(dump);
	vfree(start_text);
	vfree(record.bytes);
}
