/* The order of code, as Linux writes it. */
#define TEXT_MAIN .text
#define TEXT_TEXT							\
		*(.text.hot .text.hot.*)				\
		*(TEXT_MAIN .text.fixup)				\
		*(.text.unlikely .text.unlikely.*)			\
		*(.text.unknown .text.unknown.*)			\
		*(.noinstr.text)
