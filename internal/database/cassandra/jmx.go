package cassandra

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

var errJMX = errors.New("the member refused")

const (
	// adminTimeout bounds one request to one member.
	adminTimeout = 5 * time.Second
	// storageService is the bean that most of a member's state is in.
	storageService = "org.apache.cassandra.db:type=StorageService"
)

// jmx is a client of a member's JMX beans through Jolokia's agent,
// https://jolokia.org/reference/html/manual/jolokia_protocol.html.
type jmx struct {
	http *http.Client
	url  string
}

func newJMX(h host.Host, port int) *jmx {
	dial := host.Dialer(h, adminTimeout)
	return &jmx{
		// Java's server ends idle connections when it likes; questions are seldom.
		http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true}},
		url:  "http://" + database.LocalAddr(h, port) + "/jolokia/",
	}
}

type request struct {
	Type      string         `json:"type"`
	Bean      string         `json:"mbean"`
	Attribute []string       `json:"attribute,omitempty"`
	Operation string         `json:"operation,omitempty"`
	Arguments []any          `json:"arguments,omitempty"`
	Config    map[string]any `json:"config"`
}

var noStackTrace = map[string]any{"includeStackTrace": false}

// read reads attributes of a bean into the fields of a struct that are tagged so.
func (j *jmx) read(ctx context.Context, bean string, into any, attributes ...string) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	return j.call(ctx, request{Type: "read", Bean: bean, Attribute: attributes, Config: noStackTrace}, into)
}

// exec runs an operation of a bean to its end. An overloaded one is named "decommission(boolean)".
func (j *jmx) exec(ctx context.Context, bean, operation string, arguments ...any) error {
	return j.call(ctx, request{Type: "exec", Bean: bean, Operation: operation, Arguments: arguments, Config: noStackTrace}, nil)
}

func (j *jmx) call(ctx context.Context, q request, into any) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, j.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := j.http.Do(post)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return decode(text, into)
}

// decode reads an answer: {"status":200,"value":...} or {"status":500,"error":"..."}.
func decode(text []byte, into any) error {
	var a struct {
		Status int             `json:"status"`
		Error  string          `json:"error"`
		Value  json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("reading the agent's answer: %w", err)
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("%w: %s", errJMX, a.Error)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(a.Value, into); err != nil {
		return fmt.Errorf("reading the agent's answer: %w", err)
	}
	return nil
}
