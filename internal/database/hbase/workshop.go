package hbase

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// buildHost is a machine on which the bridge can be compiled: its files, and how a program is
// run there to its end.
type buildHost struct {
	files.System
	run func(ctx context.Context, path string, args []string) error
}

// localBuildHost is the machine of this process.
var localBuildHost = buildHost{files.Local{}, func(ctx context.Context, path string, args []string) error {
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}}

// buildHostOn is that of a node.
func buildHostOn(h host.Host) buildHost {
	return buildHost{h.Files(), func(ctx context.Context, path string, args []string) error {
		var out bytes.Buffer
		p, err := h.Start(ctx, host.Command{Name: "ecj", Path: path, Args: args, Stdout: &out, Stderr: &out})
		if err != nil {
			return err
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), p.Kill())
		}
		if err := p.Err(); err != nil {
			return fmt.Errorf("%w: %s", err, &out)
		}
		return nil
	}}
}

// packJar makes the jar of the compiled classes below a folder and of the settings beside them.
func (w buildHost) packJar(ctx context.Context, folder string) error {
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	add := func(name, path string) error {
		text, err := files.Read(ctx, w, path)
		if err != nil {
			return err
		}
		to, err := z.Create(name)
		if err != nil {
			return err
		}
		_, err = io.WriteString(to, text)
		return err
	}
	var err error
	for _, path := range files.Glob(ctx, w, filepath.Join(folder, "bridge", "*.class")) {
		err = errors.Join(err, add("bridge/"+filepath.Base(path), path))
	}
	for _, name := range []string{"log4j.properties", "hbase-site.xml"} {
		err = errors.Join(err, add(name, filepath.Join(folder, "bridge", name)))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		return err
	}
	return w.Write(ctx, filepath.Join(folder, bridgeJar), 0o644, &jar)
}
