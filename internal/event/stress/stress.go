// Package stress is programs that use up what a node has: its cores, its memory, its
// links. Each runs as a process of its own on the node ("skerry agent stress"), so that it
// counts there, and ends when its standard input does: with whoever started it.
package stress

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Ready begins the first line that a program writes, once it does what it was asked for.
// A sink adds the port that it listens on.
const Ready = "ready"

// ErrInput says that the arguments make no sense.
var ErrInput = errors.New("wrong arguments")

// Load uses something up until ctx ends. It calls ready once it does.
type Load func(ctx context.Context, ready func(more ...any) error) error

// Run runs a load until its input ends, or it fails.
func Run(ctx context.Context, in io.Reader, out io.Writer, load Load) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() { // it cannot be called off: it ends with the process
		_, _ = io.Copy(io.Discard, in)
		end()
	}()
	return load(ctx, func(more ...any) error {
		_, err := fmt.Fprintln(out, append([]any{Ready}, more...)...)
		return err
	})
}
