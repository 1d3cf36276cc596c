package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/rootless"
	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/pathprobe"
	"skerry/internal/machine/rpc"
)

// exchange is one call and its response.
type exchange struct {
	of     rpc.CallTarget
	params []json.RawMessage
	in     io.Reader // the stream of the request
	end    io.Closer // ends the reading of it
	w      http.ResponseWriter
}

// streams are the calls with streams. A returned error is the response; after a response they return nil.
var streams = map[string]func(ctx context.Context, s *server, x *exchange) error{
	"/part/Lock": holdLock, "/part/Ended": reportEnd,
	"/host/Start": startProcess, "/host/Dial": dialFromHost,
	"/files/Open": openFile, "/files/Write": writeFile,
	"/machine/ListenForProbes": listenForProbes,
}

// objects find the object of any other call by the first element of its path. The second element is a method of the object's
// interface.
var objects = map[string]func(s *server, of rpc.CallTarget) (reflect.Value, error){
	"machine": object(func(s *server, _ rpc.CallTarget) (machineCalls, error) { return machineCalls{s.Machine, s}, nil }),
	"part":    object(func(s *server, of rpc.CallTarget) (machine.Part, error) { return s.part(of) }),
	"host": object(func(s *server, of rpc.CallTarget) (hostCalls, error) {
		h, err := s.host(of)
		return hostCalls{h}, err
	}),
	"controls": object(findControls),
	"process":  object(findProcess),
	"files":    object(findFiles),
}

func object[I any](find func(*server, rpc.CallTarget) (I, error)) func(*server, rpc.CallTarget) (reflect.Value, error) {
	return func(s *server, of rpc.CallTarget) (reflect.Value, error) {
		on, err := find(s, of)
		return reflect.ValueOf(&on).Elem(), err // the value of an interface has the methods of the interface only
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	defer s.calls.Done()
	x := &exchange{w: w, end: r.Body}
	var request rpc.Request[json.RawMessage]
	decoder := json.NewDecoder(r.Body)
	if err := decoder.Decode(&request); err != nil {
		x.answer(nil, fmt.Errorf("decode request of %s: %w", r.URL.Path, err))
		return
	}
	x.of, x.params = request.Target, request.Params
	rest := bufio.NewReader(io.MultiReader(decoder.Buffered(), r.Body))
	// The newline belongs to the JSON line. A call without a stream may omit it.
	if b, err := rest.Peek(1); err == nil && b[0] == '\n' {
		_, _ = rest.Discard(1)
	}
	x.in = rest
	stream := streams[r.URL.Path]
	if stream == nil {
		x.answer(s.invoke(r.Context(), r.URL.Path, x))
		return
	}
	if err := stream(r.Context(), s, x); err != nil {
		x.answer(nil, err)
	}
}

// invoke calls a method, with the context of the call if its first parameter is one.
func (s *server) invoke(ctx context.Context, path string, x *exchange) (any, error) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	find := objects[kind]
	if find == nil {
		return nil, fmt.Errorf("unknown call %s", path)
	}
	on, err := find(s, x.of)
	if err != nil {
		return nil, err
	}
	method := on.MethodByName(name)
	if !method.IsValid() {
		return nil, fmt.Errorf("unknown call %s", path)
	}
	of := method.Type()
	var in []reflect.Value
	var params []any
	for i := range of.NumIn() {
		if i == 0 && of.In(0) == reflect.TypeFor[context.Context]() {
			in = append(in, reflect.ValueOf(ctx))
			continue
		}
		v := reflect.New(of.In(i))
		in, params = append(in, v.Elem()), append(params, v.Interface())
	}
	if err := x.decode(params...); err != nil {
		return nil, fmt.Errorf("decode request of %s: %w", path, err)
	}
	call := method.Call
	if of.IsVariadic() {
		call = method.CallSlice
	}
	out := call(in)
	if last := len(out) - 1; last >= 0 && of.Out(last) == reflect.TypeFor[error]() {
		err, _ = out[last].Interface().(error)
		out = out[:last]
	}
	if len(out) == 0 {
		return empty{}, err
	}
	return out[0].Interface(), err
}

// decode stores the parameters of the call in what into points to.
func (x *exchange) decode(into ...any) error {
	if len(x.params) != len(into) {
		return fmt.Errorf("%d parameters, want %d", len(x.params), len(into))
	}
	for i, text := range x.params {
		if err := json.Unmarshal(text, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// answer writes the response. It returns false if no stream follows.
func (x *exchange) answer(v any, err error) bool {
	response := rpc.Response{Error: rpc.NewFailure(err)}
	if err == nil {
		if response.Answer, err = json.Marshal(v); err != nil {
			response.Error = rpc.NewFailure(fmt.Errorf("encode response: %w", err))
		}
	}
	// A broken connection is reported by the caller.
	if json.NewEncoder(x.w).Encode(response) != nil || x.flush() != nil {
		return false
	}
	return response.Error == nil
}

func (x *exchange) flush() error { return http.NewResponseController(x.w).Flush() }

// errNoPersistentLabs is returned for a lab without an owner if the agent made its own user namespace.
var errNoPersistentLabs = errors.New("skerry does not run as root there, so labs cannot outlive it")

type empty = rpc.Empty

// machineCalls are the calls to the machine itself. Prepare and Open return the number of a part.
type machineCalls struct {
	machine.Machine
	s *server
}

func (machineCalls) Hello(program bool) (rpc.Hello, error) { return describeAgent(program) }

// Clock returns the machine's clock, in ns since 1970.
func (machineCalls) Clock() int64 { return time.Now().UnixNano() }

func (m machineCalls) Examine(ctx context.Context) (doctor.Report, error) { return m.s.Examine(ctx) }

func (m machineCalls) Prepare(ctx context.Context, a machine.PartSpec) (rpc.OpenedPart, error) {
	if rootless.Inside() && !a.Owned {
		// The lab's namespaces would belong to a user namespace that the next agent cannot enter.
		return rpc.OpenedPart{}, advice.With(errNoPersistentLabs, "let it, by sudo: true for example; trials work without")
	}
	p, err := m.Machine.Prepare(ctx, a)
	if err != nil {
		return rpc.OpenedPart{}, err
	}
	return m.s.addPart(&part{Part: p, ends: true, owned: a.Owned}), nil
}

func (m machineCalls) Open(ctx context.Context, lab string) (rpc.OpenedPart, error) {
	p, err := m.Machine.Open(ctx, lab)
	if err != nil {
		return rpc.OpenedPart{}, err
	}
	return m.s.addPart(&part{Part: p}), nil
}

func (machineCalls) MeasurePath(ctx context.Context, o pathprobe.Spec) (rpc.PathResult, error) {
	r, err := pathprobe.Measure(ctx, o)
	return rpc.PathResult{Result: r, Problem: rpc.NewFailure(err)}, nil
}

// hostCalls are the calls to a node or a container.
type hostCalls struct{ host.Host }

func (h hostCalls) Describe() rpc.HostInfo {
	return rpc.HostInfo{Name: h.Name(), Site: h.Site(), Addr: h.Addr(), Dir: h.Dir()}
}

func findControls(s *server, of rpc.CallTarget) (host.Controls, error) {
	h, err := s.host(of)
	if err != nil {
		return nil, err
	}
	if n, ok := h.(host.Controls); ok {
		return n, nil
	}
	return nil, fmt.Errorf("control %s: %w", h.Name(), errors.ErrUnsupported)
}

func findProcess(s *server, of rpc.CallTarget) (host.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.processes[of.Process]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("unknown process %d", of.Process)
}

// findFiles returns the file system of a node or of a part.
func findFiles(s *server, of rpc.CallTarget) (files.System, error) {
	if of.Node == "" && of.Container == nil {
		p, err := s.part(of)
		if err != nil {
			return nil, err
		}
		return p.Files(), nil
	}
	h, err := s.host(of)
	if err != nil {
		return nil, err
	}
	return h.Files(), nil
}

// holdLock holds the lock of a part until the call ends.
func holdLock(ctx context.Context, s *server, x *exchange) error {
	p, err := s.part(x.of)
	if err == nil {
		err = p.Lock(ctx)
	}
	if err != nil {
		return err
	}
	if x.answer(empty{}, nil) {
		<-ctx.Done()
	}
	_ = p.Unlock() // closing what it locked: no caller is left to report to
	return nil
}

// reportEnd returns at once whether an emulator process exists. The response ends when that process ends.
func reportEnd(ctx context.Context, s *server, x *exchange) error {
	p, err := s.part(x.of)
	if err != nil {
		return err
	}
	gone := p.Ended()
	if !x.answer(gone != nil, nil) || gone == nil {
		return nil
	}
	select {
	case <-gone:
	case <-ctx.Done():
	}
	return nil
}

// listenForProbes returns a port and serves it until the call ends.
func listenForProbes(ctx context.Context, _ *server, x *exchange) error {
	var token [16]byte
	if err := x.decode(&token); err != nil {
		return err
	}
	l, err := pathprobe.Listen(token)
	if err != nil {
		return err
	}
	defer l.Close()
	if x.answer(l.Port(), nil) {
		<-ctx.Done()
	}
	return nil
}
