package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Client properties. Further properties are those of the protocol's client or of the program.
const (
	PropProtocol = "exec.protocol"
	PropProgram  = "exec.program" // a JSON list: the program and its arguments
)

// ErrProperty marks properties that no client can be opened with.
var ErrProperty = errors.New("invalid custom-database property")

// Open returns a client: the protocol's own one, or one that starts the program.
func Open(ctx context.Context, builtin Builtin, properties map[string]string) (load.Client, error) {
	rest := protocolProperties(properties)
	if text := properties[PropProgram]; text != "" {
		var argv []string
		if err := json.Unmarshal([]byte(text), &argv); err != nil || len(argv) == 0 {
			return nil, fmt.Errorf("%w: %s: %q is not a JSON list of strings", ErrProperty, PropProgram, text)
		}
		return openProgram(ctx, argv, rest)
	}
	switch protocol := properties[PropProtocol]; {
	case protocol == HTTPKV:
		return openHTTP(rest)
	case !isProtocol(builtin, protocol):
		return nil, fmt.Errorf("%w: %s: unknown protocol %q; known: %s", ErrProperty, PropProtocol, protocol,
			strings.Join(protocolNames(builtin), ", "))
	default:
		db, _ := builtin.Protocol(protocol)
		return db.Open(ctx, rest)
	}
}

func isProtocol(builtin Builtin, protocol string) bool {
	_, ok := builtin.Protocol(protocol)
	return ok || protocol == HTTPKV
}

func protocolNames(builtin Builtin) []string { return append(builtin.Protocols(), HTTPKV) }

// HTTPKV is the protocol for records over HTTP. A record is {"FIELD": "BASE64", ...} at SERVER/TABLE/KEY.
//
//	GET    /usertable/user1?fields=field0,field1   200, 404
//	PUT    /usertable/user1                        2xx except 202
//	PATCH  /usertable/user1                        2xx except 202, 404: other fields stay
//	DELETE /usertable/user1                        2xx except 202, 404
//	GET    /usertable?start=user1&count=10         200: [{"key": ..., "values": {...}}, ...] in order; or 501
const HTTPKV = "http-kv"

// Properties of a client of http-kv.
const (
	PropServers = "http.servers" // host:port,host:port,...
	// PropSpread is how keys choose their server: "hash" (CRC-32 modulo the number of servers) or "any" (in turn).
	PropSpread = "http.spread"
	spreadAny  = "any"
)

const httpTimeout = 10 * time.Second

type httpClient struct {
	servers []string
	hash    bool
	turn    int
	client  *http.Client
}

var _ load.Client = (*httpClient)(nil)

func openHTTP(properties map[string]string) (load.Client, error) {
	r := database.ReadProperties(ErrProperty, "http.", properties, PropServers, PropSpread)
	c := &httpClient{
		servers: r.Addresses(PropServers, 80), hash: r.Choice(PropSpread, "hash", "hash", spreadAny) == "hash",
		client: &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: (&net.Dialer{Timeout: httpTimeout}).DialContext}, Timeout: httpTimeout},
	}
	return c, r.Err()
}

func (c *httpClient) chooseServer(key string) string {
	if c.hash {
		return c.servers[crc32.ChecksumIEEE([]byte(key))%uint32(len(c.servers))]
	}
	c.turn++
	return c.servers[c.turn%len(c.servers)]
}

// send sends a request and decodes the answer into into, where that is not nil.
func (c *httpClient) send(ctx context.Context, method, server, path string, body, into any) error {
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return load.Failed(database.ClassOther, server, err)
		}
		text = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+server+path, text)
	if err != nil {
		return load.Failed(database.ClassOther, server, err)
	}
	answer, err := database.DoRequest(c.client, req, server)
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return load.Failed("protocol", server, fmt.Errorf("%w: %w", errProtocol, err))
	}
	return nil
}

func recordPath(table, key string) string {
	return "/" + url.PathEscape(table) + "/" + url.PathEscape(key)
}

func (c *httpClient) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	path := recordPath(table, key)
	if len(fields) > 0 {
		path += "?fields=" + url.QueryEscape(strings.Join(fields, ","))
	}
	var values map[string][]byte
	if err := c.send(ctx, http.MethodGet, c.chooseServer(key), path, nil, &values); err != nil {
		return dst, err
	}
	return appendFields(dst, values), nil
}

func (c *httpClient) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (int, error) {
	if c.hash && len(c.servers) > 1 {
		return 0, load.ErrUnsupported
	}
	query := url.Values{"start": {start}, "count": {strconv.Itoa(count)}}
	if len(fields) > 0 {
		query.Set("fields", strings.Join(fields, ","))
	}
	var records []scanRecord
	if err := c.send(ctx, http.MethodGet, c.chooseServer(start), "/"+url.PathEscape(table)+"?"+query.Encode(), nil, &records); err != nil {
		return 0, err
	}
	var row []load.Field
	for _, r := range records {
		if visit != nil {
			row = appendFields(row[:0], r.Values)
			visit(r.Key, row)
		}
	}
	return len(records), nil
}

func (c *httpClient) Insert(ctx context.Context, table, key string, values []load.Field) error {
	return c.send(ctx, http.MethodPut, c.chooseServer(key), recordPath(table, key), fieldValues(values), nil)
}

func (c *httpClient) Update(ctx context.Context, table, key string, values []load.Field) error {
	return c.send(ctx, http.MethodPatch, c.chooseServer(key), recordPath(table, key), fieldValues(values), nil)
}

func (c *httpClient) Delete(ctx context.Context, table, key string) error {
	return c.send(ctx, http.MethodDelete, c.chooseServer(key), recordPath(table, key), nil, nil)
}

func (c *httpClient) Close() error {
	c.client.CloseIdleConnections()
	return nil
}

func fieldValues(fields []load.Field) map[string][]byte {
	values := make(map[string][]byte, len(fields))
	for _, f := range fields {
		values[f.Name] = f.Value
	}
	return values
}
