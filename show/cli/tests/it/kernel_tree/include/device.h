/* What the kernel walks over. */
#define DEVICES 64

struct device {
	unsigned long id;
	char name[56];
	unsigned int mult;
	char driver[60];
	unsigned int shift;
	char power[60];
};

extern struct device devices[DEVICES];
unsigned long walk_devices(unsigned long turn);
/* In assembly. */
unsigned int probe(void);
