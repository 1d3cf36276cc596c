package ycsb

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/suggest"
)

// ErrWorkload marks invalid properties.
var ErrWorkload = errors.New("invalid workload")

// maxCount bounds record and operation counts, so that their sums stay exact.
const maxCount = 1 << 53

type reader struct {
	p    Properties
	errs []error
}

func (r *reader) fail(name, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("property %s: %s", name, fmt.Sprintf(format, args...)))
}

func (r *reader) text(name, def string) string {
	if v, ok := r.p[name]; ok {
		return strings.TrimSpace(v)
	}
	return def
}

func (r *reader) integer(name string, def, low, high int64) int64 {
	text, ok := r.p[name]
	if !ok {
		return def
	}
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && (v < low || v > high):
		r.fail(name, "%s is not between %d and %d", strings.TrimSpace(text), low, high)
	case err != nil:
		r.fail(name, "%q is not a whole number", text)
	default:
		return v
	}
	return def
}

func (r *reader) number(name string, def, low, high float64) float64 {
	text, ok := r.p[name]
	if !ok {
		return def
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err != nil || math.IsNaN(v):
		r.fail(name, "%q is not a number", text)
	case v < low || v > high:
		r.fail(name, "%s is not between %v and %v", strings.TrimSpace(text), low, high)
	default:
		return v
	}
	return def
}

func (r *reader) boolean(name string, def bool) bool {
	switch v := strings.ToLower(r.text(name, strconv.FormatBool(def))); v {
	case "true", "false":
		return v == "true"
	default:
		r.fail(name, "%q is neither true nor false", v)
	}
	return def
}

func (r *reader) choice(name, def string, allowed ...string) string {
	v := strings.ToLower(r.text(name, def))
	if slices.Contains(allowed, v) {
		return v
	}
	hint := "one of " + strings.Join(allowed, ", ")
	if n := suggest.Nearest(v, allowed); n != "" {
		hint = "did you mean " + n + "? (" + hint + ")"
	}
	r.fail(name, "unknown %q: %s", v, hint)
	return def
}

// Parse creates a workload from properties. The error wraps ErrWorkload and names every invalid
// property. Warnings are about settings that are easily misread; UnusedReason explains properties
// without effect. Parse reads the file of a field length histogram.
func Parse(p Properties) (w Workload, warnings []string, err error) {
	r := &reader{p: p}
	w = Workload{
		Table:          r.text("table", "usertable"),
		RecordCount:    r.integer("recordcount", 0, 1, maxCount),
		OperationCount: r.integer("operationcount", 0, 0, maxCount),
		InsertStart:    r.integer("insertstart", 0, 0, maxCount),
		Fields:         int(r.integer("fieldcount", 10, 1, 10_000)),
		FieldPrefix:    r.text("fieldnameprefix", "field"),
		ReadAllFields:  r.boolean("readallfields", true),
		ReadByName:     r.boolean("readallfieldsbyname", false),
		WriteAllFields: r.boolean("writeallfields", false),
		DataIntegrity:  r.boolean("dataintegrity", false),
		ZeroPadding:    int(r.integer("zeropadding", 1, 0, 100)),
		OrderedKeys:    r.choice("insertorder", "hashed", "hashed", "ordered") == "ordered",
	}
	if _, ok := p["recordcount"]; !ok {
		r.fail("recordcount", "missing: give the number of records")
	}
	w.InsertCount = r.integer("insertcount", max(0, w.RecordCount-w.InsertStart), 0, maxCount)
	if len(r.errs) == 0 && (w.InsertStart+w.InsertCount > w.RecordCount || w.InsertCount == 0) {
		switch _, given := p["insertcount"]; {
		case !given:
			r.fail("insertstart", "%d leaves no records to load: must be below recordcount %d", w.InsertStart, w.RecordCount)
		case w.InsertCount == 0:
			r.fail("insertcount", "must be at least 1")
		default:
			r.fail("insertcount", "insertstart %d + insertcount %d is above recordcount %d", w.InsertStart, w.InsertCount, w.RecordCount)
		}
	}
	w.ExpectedOperations = w.OperationCount
	if _, ok := p["operationcount"]; !ok { // YCSB rejects a zipfian workload without it
		w.ExpectedOperations = w.RecordCount
	}
	w.FieldLength = r.fieldLength()
	if w.DataIntegrity && w.FieldLength.Distribution != Constant {
		r.fail("dataintegrity", "needs fieldlengthdistribution=constant")
	}
	w.ScanLength = Length{
		Distribution: r.choice("scanlengthdistribution", Uniform, Uniform, Zipfian),
		Min:          r.integer("minscanlength", 1, 1, maxCount),
		Max:          r.integer("maxscanlength", 1000, 1, maxCount),
	}
	if w.ScanLength.Min > w.ScanLength.Max {
		r.fail("minscanlength", "%d is above maxscanlength %d", w.ScanLength.Min, w.ScanLength.Max)
	}
	w.Mix = r.mix()
	w.Requests = r.requests()
	if class := r.text("workload", "CoreWorkload"); !strings.HasSuffix(class, "CoreWorkload") {
		r.fail("workload", "unsupported class %s: only site.ycsb.workloads.CoreWorkload is available", class)
	}
	warnings = workloadWarnings(w)
	if len(r.errs) > 0 {
		return Workload{}, warnings, fmt.Errorf("%w: %w", ErrWorkload, errors.Join(r.errs...))
	}
	return w, warnings, nil
}

func (r *reader) mix() Mix {
	m := Mix{
		Read:            r.number("readproportion", 0.95, 0, 1),
		Update:          r.number("updateproportion", 0.05, 0, 1),
		Insert:          r.number("insertproportion", 0, 0, 1),
		Scan:            r.number("scanproportion", 0, 0, 1),
		ReadModifyWrite: r.number("readmodifywriteproportion", 0, 0, 1),
		Delete:          r.number("deleteproportion", 0, 0, 1),
	}
	if m.Total() <= 0 {
		r.fail("readproportion", "all proportions are 0")
	}
	return m
}

func (r *reader) requests() Request {
	q := Request{Distribution: r.choice("requestdistribution", Uniform, distributions()...)}
	switch q.Distribution {
	case Hotspot:
		q.HotData = r.number("hotspotdatafraction", 0.2, 0, 1)
		q.HotOperations = r.number("hotspotopnfraction", 0.8, 0, 1)
	case Exponential:
		q.Percentile = r.number("exponential.percentile", 95, 0, 100)
		q.Fraction = r.number("exponential.frac", 0.8571428571, 0, math.MaxFloat64)
		if q.Percentile == 0 || q.Percentile == 100 {
			r.fail("exponential.percentile", "must be above 0 and below 100")
		}
		if q.Fraction == 0 {
			r.fail("exponential.frac", "must be above 0")
		}
	}
	return q
}

func (r *reader) fieldLength() Length {
	l := Length{
		Distribution: r.choice("fieldlengthdistribution", Constant, Constant, Uniform, Zipfian, Histogram),
		Min:          r.integer("minfieldlength", 1, 0, 1<<30),
		Max:          r.integer("fieldlength", 100, 0, 1<<30),
	}
	switch l.Distribution {
	case Constant:
		l.Min = l.Max
	case Histogram:
		file := r.text("fieldlengthhistogram", "hist.txt")
		var err error
		if l, err = readLengths(file); err != nil {
			r.fail("fieldlengthhistogram", "%v", err)
		}
	default:
		if l.Min > l.Max {
			r.fail("minfieldlength", "%d is above fieldlength %d", l.Min, l.Max)
		}
	}
	return l
}

const maxBuckets = 1 << 20

func readLengths(name string) (Length, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Length{}, err
	}
	l, err := parseLengths(string(text))
	if err != nil {
		return Length{}, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

func parseLengths(text string) (Length, error) {
	l := Length{Distribution: Histogram}
	var total int64
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "\t")
		n, err := strconv.ParseInt(value, 10, 32)
		if !ok || err != nil || n < 0 {
			return Length{}, fmt.Errorf("line %d: want two columns separated by a tab", i+1)
		}
		if i == 0 {
			if name != "BlockSize" || n == 0 {
				return Length{}, errors.New("line 1: want BlockSize and a positive number")
			}
			l.Block = n
			continue
		}
		bucket, err := strconv.Atoi(name)
		if err != nil || bucket < 0 || bucket >= maxBuckets {
			return Length{}, fmt.Errorf("line %d: bucket %q is not between 0 and %d", i+1, name, maxBuckets-1)
		}
		for len(l.Buckets) <= bucket {
			l.Buckets = append(l.Buckets, 0)
		}
		l.Buckets[bucket] += n
		total += n
	}
	if total == 0 {
		return Length{}, errors.New("all weights are 0")
	}
	l.Min, l.Max = l.Block, l.Block*int64(len(l.Buckets))
	return l, nil
}

// Settings are the properties of YCSB's client and measurements: how a workload is driven and
// displayed.
type Settings struct {
	Threads int
	Target  float64 // operations per second; 0 is unlimited
	// MaxExecutionTime ends a run; 0 means no limit.
	MaxExecutionTime time.Duration
	// Interval selects the measured interval: "op" (service time), "intended" (response time), "both",
	// or "" for the driver's default.
	Interval       string
	Percentiles    []float64
	Status         bool // write status lines
	StatusInterval time.Duration
	Label          string
	// HDR enables histogram logs. HDRPath is the prefix of their names.
	HDR     bool
	HDRPath string
}

const (
	IntervalOp       = "op"
	IntervalIntended = "intended"
	IntervalBoth     = "both"
)

// ParseSettings reads the settings from properties. Its errors are like those of Parse.
func ParseSettings(p Properties) (Settings, error) {
	r := &reader{p: p}
	s := Settings{
		Threads:          int(r.integer("threadcount", 1, 1, 1_000_000)),
		Target:           r.number("target", 0, 0, 1e9),
		MaxExecutionTime: time.Duration(r.integer("maxexecutiontime", 0, 0, 1<<31)) * time.Second,
		Status:           r.boolean("status", false),
		StatusInterval:   time.Duration(r.integer("status.interval", 10, 1, 1<<31)) * time.Second,
		Label:            p["label"],
		HDR:              r.boolean("hdrhistogram.fileoutput", false),
		HDRPath:          p["hdrhistogram.output.path"],
		Percentiles:      DefaultPercentiles(),
	}
	if _, ok := p["measurement.interval"]; ok {
		s.Interval = r.choice("measurement.interval", IntervalOp, IntervalOp, IntervalIntended, IntervalBoth)
	}
	if text := r.text("hdrhistogram.percentiles", ""); text != "" {
		s.Percentiles = nil
		for _, part := range strings.Split(text, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if err != nil || !(v >= 0 && v <= 100) {
				r.fail("hdrhistogram.percentiles", "%q is not a percentile between 0 and 100", part)
				break
			}
			s.Percentiles = append(s.Percentiles, v)
		}
	}
	if len(r.errs) > 0 {
		return Settings{}, fmt.Errorf("%w: %w", ErrWorkload, errors.Join(r.errs...))
	}
	return s, nil
}
