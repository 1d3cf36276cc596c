package loadbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/evidence/stats"
)

// Comparison is workload C against one Redis on loopback: the driver and, where it is
// there, YCSB itself with a Jedis binding, in turns, each as a process of its own.
type Comparison struct {
	Workload   string  `json:"workload"`
	Records    int     `json:"records"`
	Operations int     `json:"operations"` // of each run
	Threads    int     `json:"threads"`
	Skerry     Client  `json:"skerry"`
	YCSB       *Client `json:"ycsb,omitempty"`
	// Ratio of the operations per CPU-second; Kindest leaves out the CPU time that
	// YCSB's JVM needs to start, measured by runs of one operation.
	Ratio   float64 `json:"ratio,omitempty"`
	Kindest float64 `json:"ratio_without_jvm_start,omitempty"`
}

// Client is one of the two: medians of its runs.
type Client struct {
	Version      string    `json:"version,omitempty"`
	PerCPUSecond float64   `json:"ops_per_cpu_s"`
	Throughput   float64   `json:"throughput_ops_s"`
	StartCPU     float64   `json:"start_cpu_s"` // of a run of one operation
	Runs         []Process `json:"runs"`
}

// Process is one run of a client.
type Process struct {
	CPU        float64 `json:"cpu_s"` // user and system
	Seconds    float64 `json:"seconds"`
	OK         int     `json:"ok"`
	Throughput float64 `json:"throughput_ops_s"`
}

const (
	compareRounds  = 5
	compareRecords = 10_000
	compareRuns    = 400_000 // operations of a run
	quickRuns      = 20_000
)

// compareThreads are the numbers of threads. With one, either client pays for falling
// asleep and waking up with every operation.
func compareThreads() []int { return []int{1, 16, 64} }

// rivals are the two clients' command lines, but for what is compared.
type rivals struct {
	Options
	port int
}

func (r rivals) skerry(ctx context.Context, phase string, threads, operations int) *exec.Cmd {
	args := append([]string{"ycsb", phase, "redis", "-P", "workloadc"}, r.properties(threads, operations)...)
	return exec.CommandContext(ctx, r.Exe, args...)
}

func (r rivals) java(ctx context.Context, threads, operations int) *exec.Cmd {
	class := filepath.Join(r.YCSB, "*") + string(os.PathListSeparator) + filepath.Join(r.YCSB, "lib", "*")
	args := []string{"-cp", class, "site.ycsb.Client", "-t", "-db", "skerry.bench.RedisClient", "-p", "workload=site.ycsb.workloads.CoreWorkload",
		"-p", "readproportion=1", "-p", "updateproportion=0", "-p", "requestdistribution=zipfian"}
	return exec.CommandContext(ctx, "java", append(args, r.properties(threads, operations)...)...)
}

// properties are the same for both.
func (r rivals) properties(threads, operations int) []string {
	var args []string
	for _, p := range []string{
		"recordcount=" + strconv.Itoa(compareRecords), "operationcount=" + strconv.Itoa(operations),
		"redis.host=127.0.0.1", "redis.port=" + strconv.Itoa(r.port),
	} {
		args = append(args, "-p", p)
	}
	return append(args, "-threads", strconv.Itoa(min(threads, operations)))
}

func compare(ctx context.Context, o Options) (out []Comparison, err error) {
	if o.Server == "" {
		return nil, advice.With(errors.New("part redis needs a redis-server"), "skerry install redis")
	}
	dir, err := os.MkdirTemp("", "skerry-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := startRedis(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	r := rivals{o, server.port}
	if _, err := measure(r.skerry(ctx, "load", 1, 1)); err != nil {
		return nil, err
	}
	for _, threads := range compareThreads() {
		c, err := r.compare(ctx, threads)
		if err != nil {
			return out, err
		}
		out = append(out, c)
	}
	return out, nil
}

// compare lets the two run in turns, so that what else the machine does hits both.
func (r rivals) compare(ctx context.Context, threads int) (Comparison, error) {
	c := Comparison{Workload: "c", Records: compareRecords, Operations: compareRuns, Threads: threads}
	rounds := compareRounds
	if r.Quick {
		c.Operations, rounds = quickRuns, 1
	}
	if err := c.Skerry.start(r.skerry(ctx, "run", 1, 1)); err != nil {
		return c, err
	}
	if r.YCSB != "" {
		c.YCSB = &Client{Version: "0.17.0"}
		if err := c.YCSB.start(r.java(ctx, 1, 1)); err != nil {
			return c, err
		}
	}
	for i := range rounds {
		r.Progress(fmt.Sprintf("one Redis, workload c, %d threads, round %d of %d", threads, i+1, rounds))
		if err := c.Skerry.run(r.skerry(ctx, "run", threads, c.Operations), c.Operations); err != nil {
			return c, err
		}
		if c.YCSB != nil {
			if err := c.YCSB.run(r.java(ctx, threads, c.Operations), c.Operations); err != nil {
				return c, err
			}
		}
	}
	c.Skerry.summarise()
	if c.YCSB != nil {
		c.YCSB.summarise()
		c.Ratio = c.Skerry.PerCPUSecond / c.YCSB.PerCPUSecond
		c.Kindest = c.Skerry.PerCPUSecond / c.YCSB.perCPU(c.YCSB.StartCPU)
	}
	return c, nil
}

func (c *Client) start(cmd *exec.Cmd) error {
	r, err := measure(cmd)
	c.StartCPU = r.CPU
	return err
}

func (c *Client) run(cmd *exec.Cmd, want int) error {
	r, err := measure(cmd)
	if err == nil && r.OK != want {
		err = fmt.Errorf("%s: %d of %d reads succeeded", cmd.Path, r.OK, want)
	}
	c.Runs = append(c.Runs, r)
	return err
}

func (c *Client) summarise() {
	var throughput []float64
	for _, r := range c.Runs {
		throughput = append(throughput, r.Throughput)
	}
	c.PerCPUSecond, c.Throughput = c.perCPU(0), stats.Median(throughput)
}

// perCPU is the median of operations per CPU-second, without so much CPU time a run.
func (c *Client) perCPU(without float64) float64 {
	var v []float64
	for _, r := range c.Runs {
		v = append(v, float64(r.OK)/(r.CPU-without))
	}
	return stats.Median(v)
}

var (
	okLine         = regexp.MustCompile(`(?m)^\[(?:READ|INSERT)\], Return=OK, (\d+)$`)
	throughputLine = regexp.MustCompile(`(?m)^\[OVERALL\], Throughput\(ops/sec\), ([0-9.E]+)$`)
)

// measure runs a client to its end and reads YCSB's text.
func measure(cmd *exec.Cmd) (Process, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	from := time.Now()
	if err := cmd.Run(); err != nil {
		return Process{}, fmt.Errorf("running %s: %w\n%s", filepath.Base(cmd.Path), err, tail(errs.Bytes()))
	}
	r := Process{Seconds: time.Since(from).Seconds(), CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	ok, rate := okLine.FindSubmatch(out.Bytes()), throughputLine.FindSubmatch(out.Bytes())
	if ok == nil || rate == nil {
		return r, fmt.Errorf("%s printed no result\n%s", filepath.Base(cmd.Path), tail(append(out.Bytes(), errs.Bytes()...)))
	}
	r.OK, _ = strconv.Atoi(string(ok[1]))
	r.Throughput, _ = strconv.ParseFloat(string(rate[1]), 64)
	return r, nil
}

func tail(b []byte) []byte { return b[max(0, len(b)-2000):] }
