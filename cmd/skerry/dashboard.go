package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"skerry/cmd/internal/cli"
	"skerry/internal/database/all"
	"skerry/internal/kernel/rootless"
	"skerry/internal/record"
	"skerry/internal/report/webdata"
	"skerry/internal/serve"
	"skerry/web"
)

// tokenVariable is the environment variable of the dashboard's token. A flag would be visible to other users and in
// the recorded command line.
const tokenVariable = "SKERRY_TOKEN"

// dashboard is the web server of a command.
type dashboard struct {
	server   *serve.Server
	listener net.Listener
	url      string
	done     sync.WaitGroup
	stop     context.CancelFunc
	err      error
}

// openDashboard opens the listener; start serves on it.
func (a *app) openDashboard(runs, address string, launch serve.Launch) (*dashboard, error) {
	token := strings.TrimSpace(os.Getenv(tokenVariable))
	page, err := web.Dashboard()
	if err != nil {
		return nil, err
	}
	d := &dashboard{}
	if d.listener, err = serve.InheritedListener(); err != nil {
		return nil, err
	}
	if d.listener == nil {
		d.listener, err = serve.Listen(address, token)
		if errors.Is(err, serve.ErrToken) {
			err = fmt.Errorf("%w: %w", cli.ErrUsage, err)
		}
		if err != nil {
			return nil, err
		}
	}
	port := 0
	if t, ok := d.listener.Addr().(*net.TCPAddr); ok {
		port = t.Port
	}
	c := serve.Config{
		Token: token, Port: port, Version: version, Page: page, Report: a.writeRunReport, Launch: launch, Log: a.Log,
		Databases: all.Databases(), Registry: all.Registry(), Choices: choicesFolder,
	}
	if c.Runs, err = filepath.Abs(runs); err == nil {
		c.Experiments, err = os.Getwd()
	}
	if err == nil {
		d.server, err = serve.New(c)
	}
	if err != nil {
		return nil, errors.Join(err, d.listener.Close())
	}
	d.url = serve.URL(d.listener.Addr())
	return d, nil
}

// writeRunReport writes the report of a run for the dashboard.
func (a *app) writeRunReport(w io.Writer, d *record.Dir) error {
	page, err := a.reportPage()
	if err != nil {
		return err
	}
	return webdata.Write(w, page, d)
}

// passListener passes the listener to the process that restarts this command in a user namespace, if it will.
func (d *dashboard) passListener() error {
	if rootless.Inside() {
		return nil
	}
	needed, err := rootless.Needed()
	if err != nil || !needed {
		return err
	}
	return serve.PassListener(d.listener)
}

// start serves until close is called or ctx ends.
func (d *dashboard) start(ctx context.Context) {
	ctx, d.stop = context.WithCancel(ctx)
	d.done.Go(func() { d.err = d.server.Serve(ctx, d.listener) })
}

func (d *dashboard) close() error {
	d.stop()
	d.done.Wait()
	return d.err
}

// announce prints the address of the dashboard, and opens a browser if open is set.
func (a *app) announce(ctx context.Context, d *dashboard, fragment string, open bool) {
	fmt.Fprintf(a.Err, "dashboard: %s%s\n", d.url, fragment)
	if os.Getenv(tokenVariable) != "" {
		fmt.Fprintf(a.Err, "  log in with the token in %s\n", tokenVariable)
	}
	if open {
		if err := exec.CommandContext(ctx, "xdg-open", d.url+fragment).Run(); err != nil {
			fmt.Fprintf(a.Err, "note: opening a browser failed: %v\n", err)
		}
	}
}
