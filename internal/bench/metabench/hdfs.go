package metabench

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"skerry/internal/install"
)

//go:embed hdfs/HdfsBench.java
var hdfsSource embed.FS

//go:embed hdfs.lock
var hdfsLock string

// hdfsRecipe installs the NameNode with its own benchmark, and the compiler of ours.
var hdfsRecipe = install.Recipe{
	Name: "hdfs", Summary: "HDFS' NameNode and its benchmark (jars, runs on Java 11 to 17)", Jars: hdfsLock, Java: install.Java{Min: 11, Max: 17},
}

// HDFS is what a NameNode did.
type HDFS struct {
	Version  string  `json:"version"`
	Mkdirs   float64 `json:"mkdirs_s"`     // through its RPC client
	Listings float64 `json:"getlisting_s"` // of a directory of ten
	// By NNThroughputBenchmark, in the NameNode's process.
	LocalMkdirs float64 `json:"local_mkdirs_s"`
	LocalStatus float64 `json:"local_filestatus_s"`
}

const (
	hdfsHeap = "-Xmx2g"
	logging  = `log4j.rootLogger=ERROR,console
log4j.logger.org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark=INFO
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%m%n
`
)

// hdfs measures a NameNode as its own benchmarks and its own RPC client see it.
func (b *bench) hdfs(ctx context.Context) error {
	cache, err := install.DefaultDir()
	if err != nil {
		return err
	}
	s := install.Store{Dir: cache, Progress: b.Progress}
	if _, err := s.Install(ctx, hdfsRecipe); err != nil {
		return err
	}
	in, err := s.Find(ctx, hdfsRecipe, "")
	if err != nil {
		return err
	}
	j := java{program: in.Programs["java"], lib: filepath.Join(in.Dir, "lib"), conf: b.room("hdfs")}
	if err := j.prepare(ctx); err != nil {
		return err
	}
	r := &HDFS{Version: in.Version}
	b.r.HDFS = r
	b.say("HDFS over RPC")
	if err := b.hdfsRPC(ctx, j, r); err != nil {
		return err
	}
	b.say("HDFS in process")
	return b.hdfsLocal(ctx, j, r)
}

// java runs classes of the installation, with settings in conf.
type java struct{ program, lib, conf string }

func (j java) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, j.program, append([]string{hdfsHeap, "-XX:-UsePerfData", "-Djava.io.tmpdir=" + j.conf, "-cp", j.conf + ":" + j.lib + "/*"}, args...)...)
}

// prepare compiles the client, and writes settings. The folder webapps is there since a
// NameNode ends without it.
func (j java) prepare(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(j.conf, "webapps", "hdfs"), 0o755); err != nil {
		return err
	}
	settings := fmt.Sprintf("<configuration><property><name>dfs.namenode.name.dir</name><value>file://%s</value></property>"+
		"<property><name>dfs.namenode.http-address</name><value>127.0.0.1:0</value></property></configuration>\n", filepath.Join(j.conf, "local"))
	source, err := hdfsSource.ReadFile("hdfs/HdfsBench.java")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"log4j.properties": logging, "hdfs-site.xml": settings, "HdfsBench.java": string(source)} {
		if err := os.WriteFile(filepath.Join(j.conf, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	compilers, err := filepath.Glob(filepath.Join(j.lib, "ecj-*.jar"))
	if err != nil || len(compilers) == 0 {
		return errors.Join(errors.New("no compiler among the jars"), err)
	}
	jars, err := filepath.Glob(filepath.Join(j.lib, "*.jar"))
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, j.program, "-XX:-UsePerfData", "-jar", compilers[0], "-source", "11", "-target", "11", "-nowarn", "-proc:none",
		"-cp", strings.Join(jars, ":"), "-d", j.conf, filepath.Join(j.conf, "HdfsBench.java")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("compiling the client: %w: %s", err, out)
	}
	return nil
}

// hdfsRPC measures a NameNode through its client, all threads on one connection and each
// on one of its own: the better counts.
func (b *bench) hdfsRPC(ctx context.Context, j java, r *HDFS) (err error) {
	node := j.command(ctx, "HdfsBench", "namenode", filepath.Join(j.conf, "served"))
	var said strings.Builder
	node.Stderr = &said
	in, err := node.StdinPipe()
	if err != nil {
		return err
	}
	out, err := node.StdoutPipe()
	if err != nil {
		return err
	}
	if err := node.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(), ignoreExit(node.Wait())) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	port, found := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if !found {
		return errors.Join(fmt.Errorf("the NameNode said %q", line), err, errors.New(shortened(said.String())))
	}
	for _, connections := range []int{1, b.Clients} {
		text, err := j.command(ctx, "HdfsBench", "client", port, strconv.Itoa(b.Clients), strconv.Itoa(connections),
			strconv.FormatFloat(b.Duration.Seconds(), 'f', -1, 64)).Output()
		if err != nil {
			return explained(err)
		}
		var mkdirs, listings float64
		if _, err := fmt.Sscanf(string(text), "listing %g\nmkdirs %g\n", &listings, &mkdirs); err != nil {
			return fmt.Errorf("the client said %q: %w", text, err)
		}
		r.Mkdirs, r.Listings = max(r.Mkdirs, mkdirs), max(r.Listings, listings)
	}
	return nil
}

// perSecond finds the result in what NNThroughputBenchmark prints; the last counts.
var perSecond = regexp.MustCompile(`Ops per sec: ([0-9.E]+)`)

// hdfsLocal runs NNThroughputBenchmark in the NameNode's own process.
func (b *bench) hdfsLocal(ctx context.Context, j java, r *HDFS) error {
	format := j.command(ctx, "org.apache.hadoop.hdfs.server.namenode.NameNode", "-format", "-nonInteractive", "-force")
	if out, err := format.CombinedOutput(); err != nil {
		return fmt.Errorf("formatting a NameNode: %w: %s", err, shortened(string(out)))
	}
	// About as many operations as take the time of the other measurements.
	n := strconv.Itoa(max(5000, int(20_000*b.Duration/time.Second)))
	for _, m := range []struct {
		into *float64
		args []string
	}{
		{&r.LocalMkdirs, []string{"-op", "mkdirs", "-dirs", n, "-dirsPerDir", "32"}},
		{&r.LocalStatus, []string{"-op", "fileStatus", "-files", n, "-filesPerDir", "32"}},
	} {
		args := append([]string{"org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark", "-fs", "file:///"}, m.args...)
		out, err := j.command(ctx, append(args, "-threads", strconv.Itoa(b.Clients))...).CombinedOutput()
		found := perSecond.FindAllSubmatch(out, -1)
		if len(found) == 0 {
			return fmt.Errorf("NNThroughputBenchmark said no result: %w: %s", errors.Join(err, io.ErrUnexpectedEOF), shortened(string(out)))
		}
		if *m.into, err = strconv.ParseFloat(string(found[len(found)-1][1]), 64); err != nil {
			return err
		}
	}
	return nil
}

func explained(err error) error {
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%w: %s", err, shortened(string(e.Stderr)))
	}
	return err
}

func shortened(s string) string {
	const most = 2000
	if len(s) > most {
		return "..." + s[len(s)-most:]
	}
	return s
}
