package loadbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
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

type clientCommands struct {
	Options
	port int
}

func (r clientCommands) skerryCommand(ctx context.Context, phase string, threads, operations int) *exec.Cmd {
	args := append([]string{"ycsb", phase, "redis", "-P", "workloadc"}, r.properties(threads, operations)...)
	return exec.CommandContext(ctx, r.Exe, args...)
}

func (r clientCommands) ycsbCommand(ctx context.Context, threads, operations int) *exec.Cmd {
	class := filepath.Join(r.YCSB, "*") + string(os.PathListSeparator) + filepath.Join(r.YCSB, "lib", "*")
	args := []string{"-cp", class, "site.ycsb.Client", "-t", "-db", "skerry.bench.RedisClient",
		"-p", "workload=site.ycsb.workloads.CoreWorkload",
		"-p", "readproportion=1", "-p", "updateproportion=0", "-p", "requestdistribution=zipfian"}
	return exec.CommandContext(ctx, "java", append(args, r.properties(threads, operations)...)...)
}

func (r clientCommands) properties(threads, operations int) []string {
	var args []string
	for _, p := range []string{
		"recordcount=" + strconv.Itoa(compareRecords), "operationcount=" + strconv.Itoa(operations),
		"redis.host=127.0.0.1", "redis.port=" + strconv.Itoa(r.port),
	} {
		args = append(args, "-p", p)
	}
	return append(args, "-threads", strconv.Itoa(min(threads, operations)))
}

func measureRedis(ctx context.Context, o Options) (out []Comparison, err error) {
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
	r := clientCommands{o, server.port}
	if _, err := runClient(r.skerryCommand(ctx, "load", 1, 1)); err != nil {
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
func (r clientCommands) compare(ctx context.Context, threads int) (Comparison, error) {
	c := Comparison{Workload: "c", Records: compareRecords, Operations: compareRuns, Threads: threads}
	rounds := compareRounds
	if r.Quick {
		c.Operations, rounds = quickRuns, 1
	}
	if err := c.Skerry.measureStart(r.skerryCommand(ctx, "run", 1, 1)); err != nil {
		return c, err
	}
	if r.YCSB != "" {
		c.YCSB = &Client{Version: "0.17.0"}
		if err := c.YCSB.measureStart(r.ycsbCommand(ctx, 1, 1)); err != nil {
			return c, err
		}
	}
	for i := range rounds {
		r.Progress(fmt.Sprintf("one Redis, workload c, %d threads, round %d of %d", threads, i+1, rounds))
		if err := c.Skerry.measureRun(r.skerryCommand(ctx, "run", threads, c.Operations), c.Operations); err != nil {
			return c, err
		}
		if c.YCSB != nil {
			if err := c.YCSB.measureRun(r.ycsbCommand(ctx, threads, c.Operations), c.Operations); err != nil {
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

func (c *Client) measureStart(cmd *exec.Cmd) error {
	r, err := runClient(cmd)
	c.StartCPU = r.CPU
	return err
}

func (c *Client) measureRun(cmd *exec.Cmd, want int) error {
	r, err := runClient(cmd)
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

func runClient(cmd *exec.Cmd) (Process, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	from := time.Now()
	if err := cmd.Run(); err != nil {
		return Process{}, fmt.Errorf("running %s: %w\n%s", filepath.Base(cmd.Path), err, lastBytes(errs.Bytes()))
	}
	r := Process{Seconds: time.Since(from).Seconds(), CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	ok, rate := okLine.FindSubmatch(out.Bytes()), throughputLine.FindSubmatch(out.Bytes())
	if ok == nil || rate == nil {
		return r, fmt.Errorf("%s printed no result\n%s", filepath.Base(cmd.Path), lastBytes(append(out.Bytes(), errs.Bytes()...)))
	}
	r.OK, _ = strconv.Atoi(string(ok[1]))
	r.Throughput, _ = strconv.ParseFloat(string(rate[1]), 64)
	return r, nil
}

func lastBytes(b []byte) []byte { return b[max(0, len(b)-2000):] }

// redisServer is one Redis without a cluster, on loopback, that keeps nothing.
type redisServer struct {
	cmd  *exec.Cmd
	port int
}

const redisStart = 10 * time.Second

func startRedis(ctx context.Context, o Options, dir string) (*redisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	logFile := filepath.Join(dir, "redis.log")
	s := &redisServer{port: port, cmd: exec.Command(o.Server, "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", dir, "--logfile", logFile)}
	s.cmd.Env = append(os.Environ(), o.Env...)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting redis: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, redisStart)
	defer cancel()
	for {
		if err := pingRedis(ctx, port); err == nil {
			return s, nil
		}
		if err := linger.For(ctx, 10*time.Millisecond); err != nil {
			log, _ := os.ReadFile(logFile)
			return nil, errors.Join(fmt.Errorf("waiting for redis: %w\n%s", err, lastBytes(log)), s.stop())
		}
	}
}

func (s *redisServer) stop() error {
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping redis: %w", err)
	}
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) { // killed, as it should be
		return fmt.Errorf("stopping redis: %w", err)
	}
	return nil
}

// freePort asks the kernel for one. Another process may bind it before Redis does, which
// then says so.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

func pingRedis(ctx context.Context, port int) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	var answer [7]byte
	if _, err := c.Read(answer[:]); err != nil {
		return err
	}
	if string(answer[:]) != "+PONG\r\n" {
		return fmt.Errorf("redis answers %q", answer)
	}
	return nil
}
