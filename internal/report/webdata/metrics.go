package webdata

const goodput = "goodput"

// metrics are what trials are compared by.
var metrics = []Metric{
	{ID: goodput, Label: "Goodput", Unit: "ops", Better: "higher"},
	{ID: "throughput", Label: "Throughput", Unit: "ops", Better: "higher"},
	{ID: "mean", Label: "Latency, mean", Unit: "us", Better: "lower", Latency: true},
	{ID: "p50", Label: "Latency, median", Unit: "us", Better: "lower", Latency: true},
	{ID: "p95", Label: "Latency, p95", Unit: "us", Better: "lower", Latency: true},
	{ID: "p99", Label: "Latency, p99", Unit: "us", Better: "lower", Latency: true},
	{ID: "p999", Label: "Latency, p99.9", Unit: "us", Better: "lower", Latency: true},
	{ID: "errors", Label: "Operations that did not end ok", Unit: "share", Better: "lower"},
	{ID: "traffic", Label: "Bytes transferred", Unit: "bytes", Better: "lower"},
	{ID: "traffic_op", Label: "Bytes transferred for each operation", Unit: "bytes", Better: "lower"},
	{ID: "recover", Label: "Slowest recovery", Unit: "s", Better: "lower"},
	{ID: "setup", Label: "Time to set up", Unit: "s"},
	{ID: "host_cpu", Label: "CPU of the whole machine", Unit: "cores"},
}
