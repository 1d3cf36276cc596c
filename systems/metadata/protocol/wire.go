// Package protocol is the JSON form of commands, results and statuses. docs/metadata-openapi.yaml describes it.
package protocol

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"skerry/systems/metadata"
)

// Command is metadata.Command in JSON. The request's path names the operation, or Op in a batch.
type Command struct {
	Op        string     `json:"op,omitempty"`
	Path      string     `json:"path"`
	To        string     `json:"to,omitempty"`
	Parents   bool       `json:"parents,omitempty"`
	Recursive bool       `json:"recursive,omitempty"`
	Replace   bool       `json:"replace,omitempty"`
	Exclusive bool       `json:"exclusive,omitempty"`
	Across    bool       `json:"across,omitempty"`
	Long      bool       `json:"long,omitempty"`
	Mode      string     `json:"mode,omitempty"` // octal digits
	Data      []byte     `json:"data,omitempty"` // base64
	Owner     string     `json:"owner,omitempty"`
	Limit     int        `json:"limit,omitempty"`
	After     string     `json:"after,omitempty"`
	Pattern   string     `json:"pattern,omitempty"`
	Kind      string     `json:"kind,omitempty"`
	MaxDepth  *int       `json:"max_depth,omitempty"`
	Time      *time.Time `json:"time,omitempty"` // touch
	Identity  string     `json:"identity,omitempty"`
}

type Entry struct {
	Name     string     `json:"name"`
	ID       string     `json:"id"` // decimal, because not all JSON parsers handle 64 bits
	Kind     string     `json:"kind,omitempty"`
	Mode     string     `json:"mode,omitempty"`
	Size     int64      `json:"size,omitempty"`
	Modified *time.Time `json:"modified,omitempty"`
	Owner    string     `json:"owner,omitempty"`
}

type Result struct {
	Entries []Entry `json:"entries,omitempty"`
	Next    string  `json:"next,omitempty"`
	Data    []byte  `json:"data,omitempty"`
	Error   *Error  `json:"error,omitempty"`
}

type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	At      string `json:"at,omitempty"`    // elsewhere: the virtual directory
	Owner   string `json:"owner,omitempty"` // elsewhere: its server
}

// Headers of requests with identities: their prefix, the log positions (also in answers), and whether it is a repetition.
const (
	IdentityHeader = "Skerry-Identity"
	SeenHeader     = "Skerry-Seen"
	AgainHeader    = "Skerry-Again"
)

// Batch has several commands; Results has their results in the same order.
type (
	Batch struct {
		Commands []Command `json:"commands"`
	}
	Results struct {
		Results []Result `json:"results"`
	}
)

func ParseOp(name string) (metadata.Op, error) {
	for _, o := range metadata.Ops() {
		if o.String() == name {
			return o, nil
		}
	}
	return metadata.Invalid, fmt.Errorf("%w operation %s", metadata.ErrInvalid, metadata.Quote(name))
}

// Decode returns the command, checked.
func (c Command) Decode() (metadata.Command, error) {
	m := metadata.Command{
		Path: c.Path, To: c.To, Parents: c.Parents, Recursive: c.Recursive, Replace: c.Replace, Exclusive: c.Exclusive,
		Across: c.Across, Long: c.Long,
		Data: c.Data, Owner: c.Owner, Limit: c.Limit, After: c.After, Pattern: c.Pattern, MaxDepth: -1,
		Identity: c.Identity,
	}
	var err error
	if m.Op, err = ParseOp(c.Op); err != nil {
		return m, err
	}
	if c.Mode != "" {
		mode, err := strconv.ParseUint(c.Mode, 8, 16)
		if err != nil {
			return m, fmt.Errorf("%w mode %s: octal digits", metadata.ErrInvalid, metadata.Quote(c.Mode))
		}
		m.Mode = uint16(mode)
	} else if m.Op == metadata.Chmod {
		return m, fmt.Errorf("%w command: chmod needs a mode", metadata.ErrInvalid)
	}
	if c.MaxDepth != nil {
		m.MaxDepth = *c.MaxDepth
	}
	if c.Time != nil && m.Op == metadata.Touch {
		m.Time = c.Time.UnixNano()
	}
	if m.Kind, err = parseKind(c.Kind); err != nil {
		return m, err
	}
	return m, m.Check()
}

func parseKind(name string) (metadata.Kind, error) {
	if name == "" {
		return 0, nil
	}
	for _, k := range []metadata.Kind{metadata.Directory, metadata.Virtual, metadata.File} {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("%w kind %s", metadata.ErrInvalid, metadata.Quote(name))
}

func EncodeCommand(m metadata.Command) Command {
	c := Command{
		Op: m.Op.String(), Path: m.Path, To: m.To, Parents: m.Parents, Recursive: m.Recursive, Replace: m.Replace, Exclusive: m.Exclusive,
		Across: m.Across, Long: m.Long, Data: m.Data, Owner: m.Owner, Limit: m.Limit, After: m.After, Pattern: m.Pattern, Identity: m.Identity,
	}
	if m.Mode != 0 || m.Op == metadata.Chmod {
		c.Mode = strconv.FormatUint(uint64(m.Mode), 8)
	}
	if m.Op == metadata.Find && m.MaxDepth >= 0 {
		c.MaxDepth = &m.MaxDepth
	}
	if m.Kind != 0 {
		c.Kind = m.Kind.String()
	}
	if m.Op == metadata.Touch && m.Time != 0 {
		t := time.Unix(0, m.Time).UTC()
		c.Time = &t
	}
	return c
}

func EncodeResult(m metadata.Result) Result {
	r := Result{Next: m.Next, Data: m.Data}
	for _, e := range m.Entries {
		entry := Entry{Name: e.Name, ID: strconv.FormatUint(e.ID, 10), Size: e.Size, Owner: e.Owner}
		if e.Kind != 0 {
			t := e.Time().UTC()
			entry.Kind, entry.Mode, entry.Modified = e.Kind.String(), strconv.FormatUint(uint64(e.Mode), 8), &t
		}
		r.Entries = append(r.Entries, entry)
	}
	if m.Err != nil {
		r.Error = &Error{Code: metadata.ErrorCode(m.Err), Message: m.Err.Error()}
		var elsewhere *metadata.ElsewhereError
		if errors.As(m.Err, &elsewhere) {
			r.Error.At, r.Error.Owner = elsewhere.At, elsewhere.Owner
		}
	}
	return r
}

// Decode returns the result that a server sent.
func (r Result) Decode() (metadata.Result, error) {
	m := metadata.Result{Next: r.Next, Data: r.Data}
	for _, e := range r.Entries {
		entry := metadata.Entry{Name: e.Name, Size: e.Size, Owner: e.Owner}
		var err error
		if entry.ID, err = strconv.ParseUint(e.ID, 10, 64); err != nil {
			return m, fmt.Errorf("invalid entry id %q", e.ID)
		}
		if entry.Kind, err = parseKind(e.Kind); err != nil {
			return m, err
		}
		if e.Mode != "" {
			mode, err := strconv.ParseUint(e.Mode, 8, 16)
			if err != nil {
				return m, fmt.Errorf("invalid entry mode %q", e.Mode)
			}
			entry.Mode = uint16(mode)
		}
		if e.Modified != nil {
			entry.Modified = e.Modified.UnixNano()
		}
		m.Entries = append(m.Entries, entry)
	}
	switch {
	case r.Error == nil:
	case r.Error.Code == metadata.ErrorCode(metadata.ErrElsewhere):
		m.Err = &metadata.ElsewhereError{At: r.Error.At, Owner: r.Error.Owner}
	default:
		m.Err = metadata.DecodeError(r.Error.Code, r.Error.Message)
	}
	return m, nil
}
