package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// OpenDatabase finds the client of a database by its name.
type OpenDatabase func(database string) (func(ctx context.Context, properties map[string]string) (Client, error), error)

// ServeAgent is the other end of a Session: it reads an AgentSpec from the first line
// of in, drives it and writes intervals and the result to out, a JSON object a line. A
// line "stop" or the end of in ends it early. The error is that of talking to the
// parent; what became of the drive is told in the output.
func ServeAgent(ctx context.Context, in io.Reader, out io.Writer, open OpenDatabase) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := bufio.NewReaderSize(in, 1<<16)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the load driver's spec: %w", err)
	}
	enc := json.NewEncoder(out)
	var spec AgentSpec
	if err := json.Unmarshal(first, &spec); err != nil {
		return fmt.Errorf("reading the load driver's spec: %w", err)
	}
	client, err := open(spec.Database)
	if err != nil {
		return enc.Encode(message{Error: &failure{Text: err.Error()}})
	}
	goOn := make(chan struct{}, gates)
	go func() { // ends with the process at the latest: in cannot be interrupted
		defer cancel()
		for {
			line, err := lines.ReadString('\n')
			switch word := strings.TrimSpace(line); {
			case word == stopCommand || err != nil:
				return
			case word == goCommand:
				select {
				case goOn <- struct{}{}:
				default: // more often than there are gates
				}
			}
		}
	}()

	var once sync.Once
	var broken error
	tell := func(m message) {
		if err := enc.Encode(m); err != nil {
			// Nobody listens any more: end, as when in ends.
			once.Do(func() { broken = err; cancel() })
		}
	}
	if spec.Gated {
		spec.Spec.Gate = func() {
			tell(message{Ready: true})
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
	}
	spec.Spec.Began = func(at time.Time) { tell(message{Began: &at}) }
	result, err := Run(ctx, spec.Spec,
		func(ctx context.Context) (Client, error) { return client(ctx, spec.Properties) },
		func(i Interval) { tell(message{Interval: &i}) })
	if broken != nil {
		return fmt.Errorf("writing to the parent: %w", broken)
	}
	switch {
	case err == nil:
		return enc.Encode(message{Result: &result})
	case errors.Is(err, ErrIncomplete):
		return enc.Encode(message{Error: &failure{Text: err.Error(), Kind: kindIncomplete, Result: &result}})
	case errors.Is(err, ErrSpec):
		return enc.Encode(message{Error: &failure{Text: err.Error(), Kind: kindSpec}})
	}
	return enc.Encode(message{Error: &failure{Text: err.Error()}})
}
