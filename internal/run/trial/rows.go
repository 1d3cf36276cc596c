package trial

import (
	"maps"
	"slices"
	"time"

	"skerry/internal/evidence/recovery"
	"skerry/internal/lab"
	"skerry/internal/load"
	"skerry/internal/record"
)

// second is a row of the timeline.
func second(i load.Interval) record.Second {
	s, r := i.Latency.Service, i.Latency.Response
	return record.Second{
		T: i.T, Length: i.Length.Seconds(), OK: i.OK, Failed: i.Failed, Unknown: i.Unknown, Dropped: i.Dropped,
		ServiceP50: us(s.Quantile(0.5)), ServiceP95: us(s.Quantile(0.95)), ServiceP99: us(s.Quantile(0.99)),
		ServiceP999: us(s.Quantile(0.999)), ServiceMax: us(s.Max()),
		ResponseP50: us(r.Quantile(0.5)), ResponseP95: us(r.Quantile(0.95)), ResponseP99: us(r.Quantile(0.99)), ResponseP999: us(r.Quantile(0.999)),
		ClientCPU: i.Cores(), InFlight: i.InFlight,
	}
}

// operationSeconds are what onlookers are told of each kind of operation.
func operationSeconds(i load.Interval) (rows []record.OperationSecond) {
	for _, name := range slices.Sorted(maps.Keys(i.Operations)) {
		o := i.Operations[name]
		r := o.Latency.Response
		rows = append(rows, record.OperationSecond{T: i.T, Operation: name, OK: o.OK, P50: us(r.Quantile(0.5)), P95: us(r.Quantile(0.95)), P99: us(r.Quantile(0.99))})
	}
	return rows
}

// poolSeconds are the rows of pools.parquet, where there are several.
func poolSeconds(i load.Interval) (rows []record.PoolSecond) {
	for _, p := range i.Pools {
		if p.Name != "" {
			rows = append(rows, record.PoolSecond{Pool: p.Name, Second: second(p.Interval)})
		}
	}
	return rows
}

// errorSeconds are the rows of errors.parquet.
func errorSeconds(l *lab.Lab, i load.Interval) (rows []record.ErrorSecond) {
	for _, e := range i.Errors {
		rows = append(rows, record.ErrorSecond{T: i.T, Operation: e.Operation, Outcome: e.Outcome.String(), Class: e.Class, Node: nodeOf(l, e.Node), Count: e.Count})
	}
	return rows
}

// bin is what recovery is measured from.
func bin(began time.Time, i load.Interval) recovery.Bin {
	return recovery.Bin{
		At: i.Start.Sub(began).Seconds(), Length: i.Length.Seconds(), OK: i.OK, Failed: i.Failed, Unknown: i.Unknown,
		Dropped: i.Dropped, P99: us(i.Latency.Response.Quantile(0.99)), Writes: i.Writes,
	}
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
