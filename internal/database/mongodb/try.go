package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
)

// ErrUnfit marks programs that cannot run a cluster.
var ErrUnfit = errors.New("cannot be used")

// oldest is the oldest MongoDB that the driver supports.
const oldest = "4.2"

const codeUnauthorized = 13

const (
	// tryTimeout bounds the trial of a server, also on a busy machine.
	tryTimeout = time.Minute
	tryPoll    = 50 * time.Millisecond
)

// tryPrograms checks that the programs' versions match and that mongod forms a replica set without a password,
// on the loopback.
func tryPrograms(ctx context.Context, version string, programs map[string]string, env []string) error {
	err := checkVersions(ctx, version, programs, env)
	if err == nil {
		err = tryServer(ctx, programs["mongod"], env)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return advice.With(fmt.Errorf("%s %w: %w", programs["mongod"], ErrUnfit, err),
		"give mongod and mongos of one version, %s or newer, as MongoDB builds them, with no options added: "+
			"skerry install %s --from PATH", oldest, Name)
}

func checkVersions(ctx context.Context, version string, programs map[string]string, env []string) error {
	if isOlder(version, oldest) {
		return fmt.Errorf("version %s is too old, %s is the oldest that the driver speaks to", version, oldest)
	}
	path := programs["mongos"]
	if path == "" {
		return nil // replica sets need no mongos
	}
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s --version: %w: %s", path, err, lastLines(out))
	}
	if m := routerVersion.FindSubmatch(out); m == nil || string(m[1]) != version {
		return fmt.Errorf("%s is of another version than %s: %s", path, version, firstLine(out))
	}
	return nil
}

// isOlder compares versions by their first two numbers. A version without numbers is not older.
func isOlder(version, than string) bool {
	v, t := strings.SplitN(version, ".", 3), strings.SplitN(than, ".", 3)
	for i := range min(len(v), len(t), 2) {
		a, err := strconv.Atoi(v[i])
		b, _ := strconv.Atoi(t[i])
		if err != nil || a != b {
			return err == nil && a < b
		}
	}
	return false
}

// tryServer starts a mongod and forms a replica set of one member.
func tryServer(ctx context.Context, path string, env []string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryTimeout, fmt.Errorf("it does not serve after %v", tryTimeout))
	defer cancel()
	data, err := os.MkdirTemp("", "mongod-")
	if err != nil {
		return fmt.Errorf("creating a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	o, err := parseOptions(1, nil)
	if err != nil {
		return err
	}
	if o.port, err = findFreePort(); err != nil {
		return err
	}
	p := o.planProcesses([]string{""})[0]
	const bind = "127.0.0.1"
	addr := net.JoinHostPort(bind, strconv.Itoa(p.port))

	ctx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	cmd := exec.Command(path, p.arguments(o, bind, data, nil)...)
	var output bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &output, &output
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := cmd.Wait()
		ended(fmt.Errorf("it ends (%v): %s", err, lastLines(output.Bytes())))
	}()
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		<-done
	}()
	client, err := newDirectClient(new(net.Dialer), addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disconnect(client)) }()
	return formLoneSet(ctx, client, setConfig{Name: p.set, Version: 1, Members: []memberConfig{{Host: addr, Priority: 1, Votes: 1}}})
}

// formLoneSet forms a set of one server and reads its options. With authentication, a server without users accepts the
// forming from its own machine, but not the reading. A server's end is reported rather than the refused connection.
func formLoneSet(ctx context.Context, client *mongo.Client, config setConfig) error {
	for {
		err := initiateSet(ctx, client, config)
		if err == nil {
			err = command(ctx, client, bson.D{{Key: "getCmdLineOpts", Value: 1}}, nil)
		}
		var refused mongo.CommandError
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &refused) || refused.HasErrorLabel("NetworkError"):
		case refused.Code == codeUnauthorized:
			return fmt.Errorf("authentication is on: %w", err)
		default:
			return err
		}
		if cause := linger.For(ctx, tryPoll); cause != nil {
			return cause
		}
	}
}

func findFreePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// firstLine returns the first line of a program's output, lastLines the last three.
func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}
