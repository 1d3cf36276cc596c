package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/event"
	"skerry/internal/link"
	"skerry/internal/record"
	"skerry/test/testkit"
)

// feedEvent is a server-sent event.
type feedEvent struct{ id, kind, data string }

// onlooker follows a feed through its socket.
type onlooker struct {
	t    *testing.T
	body *bufio.Reader
	stop func()
}

func open(t *testing.T, dir, id string) *onlooker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://run/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", id)
	answer, err := (&http.Client{Transport: Transport(dir)}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	stop := func() { cancel(); answer.Body.Close() }
	t.Cleanup(stop)
	return &onlooker{t, bufio.NewReader(answer.Body), stop}
}

// next returns the next event except pings.
func (o *onlooker) next() feedEvent {
	o.t.Helper()
	var e feedEvent
	for {
		line, err := o.body.ReadString('\n')
		if err != nil {
			o.t.Fatalf("the feed ended: %v", err)
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if e.kind != "ping" {
				return e
			}
			e = feedEvent{}
		}
	}
}

func (o *onlooker) want(kind Kind, data string) feedEvent {
	o.t.Helper()
	e := o.next()
	if e.kind != string(kind) || !strings.Contains(e.data, data) {
		o.t.Errorf("got event %s %s, want %s with %s", e.kind, e.data, kind, data)
	}
	return e
}

func listen(t *testing.T) (*Feed, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("a run with a long name ", 8))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := New(Run{Name: "r", Experiment: "e", Planned: 2})
	s, err := Listen(dir, f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := ReadState(context.Background(), dir); !errors.Is(err, ErrNotLive) {
			t.Errorf("after the end: %v", err)
		}
	})
	return f, dir
}

func begin(f *Feed) {
	f.BeginTrial(Trial{ID: 1, Number: 1})
	q := link.Quality{Latency: 20 * time.Millisecond}
	f.SetCloud(Cloud{Name: "c", Links: []Link{NewLink("a~b", "a", "b", q, q), NewLink("a~c", "a", "c", q, q)}})
}

func TestFollow(t *testing.T) {
	f, dir := listen(t)
	o := open(t, dir, "")
	o.want(KindState, `"experiment":"e"`)
	begin(f)
	o.want(KindState, `"trial":{"id":1`)
	o.want(KindState, `"latency_ms":20`)
	f.SetStage("loading")
	o.want(KindTrial, `"stage":"loading"`)
	f.AddSecond(record.Second{T: 1, OK: 17})
	away := o.want(KindSecond, `"ok":17`)
	o.stop()

	f.ChangeLinks([]link.Change{{ID: "a~b", AB: &link.Quality{Down: true}}, {ID: "unheard of"}})
	f.AddEvent(record.Event{ID: 1, Kind: "link_down", State: record.EventBegun})
	f.AddEvent(record.Event{ID: 1, Kind: "link_down", State: record.EventActive})
	f.AddNodes([]record.NodeSecond{{T: 1, Node: "a", CPU: 0.5}})

	back := open(t, dir, away.id) // a browser returning from suspend
	l := back.want(KindLinks, `"down":true`)
	if strings.Contains(l.data, "a~c") {
		t.Errorf("unchanged links were sent: %s", l.data)
	}
	back.want(KindEvent, `"state":"begun"`)
	back.want(KindEvent, `"state":"active"`)
	back.want(KindNodes, `"cpu_cores":0.5`)

	late := open(t, dir, "another-run.7")
	var s State
	text := []byte(late.want(KindState, "").data)
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if places, err := testkit.FindNulls(text); err != nil || len(places) > 0 {
		t.Errorf("null at %v, %v", places, err)
	}
	if len(s.Seconds) != 1 || len(s.Nodes) != 1 || len(s.Events) != 1 || s.Events[0].State != record.EventActive ||
		!s.Cloud.Links[0].AB.Down || s.Cloud.Links[0].BA.Down {
		t.Errorf("a late onlooker got %+v", s)
	}
	f.EndTrial(record.Trial{ID: 1, State: record.TrialOK, Verdict: record.Verdict{State: record.Suspect, Reasons: []string{"busy"}}})
	f.EndTrial(record.Trial{ID: 1, State: record.TrialFailed})
	begin(f)
	late.want(KindResult, `"reasons":["busy"]`)
	late.want(KindDoubts, `"kind":"trust"`)
	late.want(KindResult, `"state":"failed"`)
	late.want(KindDoubts, `"kind":"trust"`) // the measured attempt is valid
	late.want(KindState, `"seconds":[]`)
	late.want(KindState, `"results":[{"id":1`)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	late.want(KindEnd, "{}")
	if _, err := late.body.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// An onlooker that was disconnected for longer than the backlog receives the complete state again.
func TestFollowAfterDroppedMessages(t *testing.T) {
	f, dir := listen(t)
	begin(f)
	o := open(t, dir, "")
	first := o.want(KindState, "")
	o.stop()
	for i := range backlogMessages + 10 {
		f.AddSecond(record.Second{T: int64(i)})
	}
	back := open(t, dir, first.id)
	var s State
	if err := json.Unmarshal([]byte(back.want(KindState, "").data), &s); err != nil {
		t.Fatal(err)
	}
	if last := s.Seconds[len(s.Seconds)-1].T; last != backlogMessages+9 {
		t.Errorf("the last second is %d", last)
	}
	f.SetStage("x")
	back.want(KindTrial, `"stage":"x"`)
}

func TestContinuousLinkChangesAreThrottled(t *testing.T) {
	f, dir := listen(t)
	begin(f)
	for i := range 100 {
		f.ChangeLinks([]link.Change{{ID: "a~b", AB: &link.Quality{Latency: time.Duration(i) * time.Millisecond}}})
	}
	if n := len(f.log.messages); n > 2+1 && time.Since(f.linksSent) < minLinkInterval {
		t.Errorf("%d messages", n)
	}
	s, err := ReadState(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Cloud.Links[0].AB.LatencyMS; got != 99 {
		t.Errorf("the state has %g ms", got)
	}
}

func TestRestoredLinkIsUnchanged(t *testing.T) {
	f, dir := listen(t)
	begin(f)
	changed := func(latency time.Duration) bool {
		f.ChangeLinks([]link.Change{{ID: "a~b", AB: &link.Quality{Latency: latency}}})
		s, err := ReadState(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return s.Cloud.Links[0].Changed
	}
	if changed(10 * time.Millisecond) {
		t.Error("a change before the measurement is lost")
	}
	f.SetMeasuring(time.Now(), func(context.Context, event.Event) (record.Event, error) { return record.Event{}, nil })
	if !changed(30*time.Millisecond) || changed(10*time.Millisecond) {
		t.Error("a link counts as changed although it has its initial state")
	}
}

func TestFire(t *testing.T) {
	f, dir := listen(t)
	begin(f)
	client := &http.Client{Transport: Transport(dir)}
	post := func(body string) (int, string) {
		answer, err := client.Post("http://run/events", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(b)
	}
	const cut = `{"link_down": {"between": ["a", "b"]}, "for": "5s"}`
	if code, body := post(cut); code != http.StatusConflict || !strings.Contains(body, ErrNotMeasuring.Error()) {
		t.Errorf("before the measurement: %d %s", code, body)
	}
	f.SetMeasuring(time.Now(), func(_ context.Context, e event.Event) (record.Event, error) {
		if e.Kind() != "link_down" || e.For.Duration() != 5*time.Second {
			return record.Event{}, fmt.Errorf("%w: %+v", event.ErrInvalid, e)
		}
		return record.Event{ID: 4, Kind: e.Kind(), Source: record.SourceUI}, nil
	})
	if code, body := post(cut); code != http.StatusOK || !strings.Contains(body, `"id":4`) {
		t.Errorf("%d %s", code, body)
	}
	if e, err := SendEvent(t.Context(), dir, []byte("{link_down: {between: [a, b]}, for: 5s}")); err != nil || e.ID != 4 {
		t.Errorf("sent: %+v, %v", e, err)
	}
	if _, err := SendEvent(t.Context(), dir, []byte("{kil: a}")); !errors.Is(err, ErrRefused) || !strings.Contains(advice.Of(err), "kill") {
		t.Errorf("a misspelt event: %v, %q", err, advice.Of(err))
	}
	if _, err := SendEvent(t.Context(), t.TempDir(), []byte(cut)); !errors.Is(err, ErrNotLive) {
		t.Errorf("no run: %v", err)
	}
	for _, bad := range []string{"", "{", `{"pause": "a"}`, `{"nothing": 1}`, strings.Repeat("x", eventLimit+1)} {
		if code, body := post(bad); code != http.StatusBadRequest || !strings.Contains(body, `"error"`) {
			t.Errorf("%.20q: %d %s", bad, code, body)
		}
	}
	f.SetMeasuring(time.Time{}, nil)
	if code, _ := post(cut); code != http.StatusConflict {
		t.Errorf("after the measurement: %d", code)
	}
}

func TestNilFeed(t *testing.T) {
	var f *Feed
	begin(f)
	f.SetStage("x")
	f.AddSecond(record.Second{})
	f.AddNodes([]record.NodeSecond{{}})
	f.ChangeLinks([]link.Change{{ID: "a"}})
	f.SetRTTs(map[string]float64{"a": 1})
	f.AddEvent(record.Event{})
	f.SetNetwork(record.NetworkSecond{})
	f.SetMeasuring(time.Now(), nil)
	f.EndTrial(record.Trial{})
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	_, dir := listen(t)
	st, err := os.Stat(filepath.Join(dir, SocketFile))
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
}

// BenchmarkSecond measures the cost of a second of a trial: a second of the driver and of the nodes, for a usual and a
// large cloud.
func BenchmarkSecond(b *testing.B) {
	for _, nodes := range []int{8, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			f := New(Run{})
			rows := make([]record.NodeSecond, nodes)
			for i := range rows {
				rows[i] = record.NodeSecond{Node: fmt.Sprintf("node-%d", i), CPU: 0.123456, Memory: 123456789, RxBytes: 1 << 20}
			}
			for b.Loop() {
				f.AddSecond(record.Second{OK: 12345, ServiceP50: 1234.5})
				f.AddNodes(rows)
			}
		})
	}
}
