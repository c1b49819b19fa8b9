/* The tracepoint that LTTng-UST is measured with: one integer field. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER lineup_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "provider.h"
#if !defined(PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROVIDER_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(lineup_bench, event, LTTNG_UST_TP_ARGS(unsigned long, value),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned long, value, value)))
#endif
#include <lttng/tracepoint-event.h>
