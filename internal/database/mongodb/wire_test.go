//lint:file-ignore SA1019 the driver itself opens connections with an OP_QUERY

package mongodb

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// reply answers a command with a document or an error.
type reply func(command bson.D) bson.D

// fakeServer speaks MongoDB's wire protocol to the driver and answers as the test defines.
type fakeServer struct {
	listener net.Listener
	answer   reply

	mu    sync.Mutex
	conns map[net.Conn]bool
	ended sync.WaitGroup
}

// serveFake listens and answers until it is closed.
func serveFake(addr string, answer reply) (*fakeServer, error) {
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		return nil, err
	}
	f := &fakeServer{listener: l, answer: answer, conns: make(map[net.Conn]bool)}
	f.ended.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns[conn] = true
			f.mu.Unlock()
			f.ended.Go(func() { f.serve(conn) })
		}
	})
	return f, nil
}

// close ends it and its connections.
func (f *fakeServer) close() {
	f.listener.Close()
	f.mu.Lock()
	for c := range f.conns {
		c.Close()
	}
	f.mu.Unlock()
	f.ended.Wait()
}

// serve reads messages and answers them. The first of a connection is an OP_QUERY, the others are OP_MSG.
func (f *fakeServer) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		message := make([]byte, binary.LittleEndian.Uint32(size[:]))
		copy(message, size[:])
		if _, err := io.ReadFull(conn, message[4:]); err != nil {
			return
		}
		_, id, _, op, body, ok := wiremessage.ReadHeader(message)
		if !ok {
			return
		}
		command, err := commandOf(op, body)
		if err != nil {
			return
		}
		if _, err := conn.Write(answerTo(id, op, f.answer(command))); err != nil {
			return
		}
	}
}

// commandOf returns the command of a message, without the attached sequences (documents, updates, deletes).
func commandOf(op wiremessage.OpCode, body []byte) (bson.D, error) {
	var raw []byte
	switch op {
	case wiremessage.OpQuery:
		_, rest, _ := wiremessage.ReadQueryFlags(body)
		_, rest, _ = wiremessage.ReadQueryFullCollectionName(rest)
		_, rest, _ = wiremessage.ReadQueryNumberToSkip(rest)
		_, rest, _ = wiremessage.ReadQueryNumberToReturn(rest)
		doc, _, _ := wiremessage.ReadQueryQuery(rest)
		raw = doc
	case wiremessage.OpMsg:
		_, rest, _ := wiremessage.ReadMsgFlags(body)
		_, rest, _ = wiremessage.ReadMsgSectionType(rest)
		doc, _, _ := wiremessage.ReadMsgSectionSingleDocument(rest)
		raw = doc
	default:
		return nil, fmt.Errorf("message of kind %v", op)
	}
	var command bson.D
	return command, bson.Unmarshal(raw, &command)
}

func answerTo(id int32, op wiremessage.OpCode, doc bson.D) []byte {
	raw, err := bson.Marshal(doc)
	if err != nil {
		raw, _ = bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "errmsg", Value: err.Error()}})
	}
	if op == wiremessage.OpQuery {
		at, b := wiremessage.AppendHeaderStart(nil, 1, id, wiremessage.OpReply)
		b = wiremessage.AppendReplyFlags(b, 0)
		b = wiremessage.AppendReplyCursorID(b, 0)
		b = wiremessage.AppendReplyStartingFrom(b, 0)
		b = wiremessage.AppendReplyNumberReturned(b, 1)
		return sized(append(b, raw...), at)
	}
	at, b := wiremessage.AppendHeaderStart(nil, 1, id, wiremessage.OpMsg)
	b = wiremessage.AppendMsgFlags(b, 0)
	b = wiremessage.AppendMsgSectionType(b, wiremessage.SingleDocument)
	return sized(append(b, raw...), at)
}

func sized(b []byte, at int32) []byte {
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b))-uint32(at))
	return b
}

// serverError is an error response of a server.
func serverError(code int, name, text string) bson.D {
	return bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "codeName", Value: name}, {Key: "errmsg", Value: text}}
}

// done is a successful response.
func done(more ...bson.E) bson.D { return append(bson.D(more), bson.E{Key: "ok", Value: 1.0}) }

// hello is the response of every server to the driver's first command, as of MongoDB 4.2.
func hello(more ...bson.E) bson.D {
	return done(append([]bson.E{
		{Key: "maxBsonObjectSize", Value: 16777216}, {Key: "maxMessageSizeBytes", Value: 48000000},
		{Key: "maxWriteBatchSize", Value: 100000}, {Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 8},
	}, more...)...)
}

// isHello reports whether a command is the driver's first.
func isHello(command bson.D) bool {
	switch command[0].Key {
	case "hello", "isMaster", "ismaster":
		return true
	}
	return false
}

func mustServe(t *testing.T, addr string, answer reply) *fakeServer {
	t.Helper()
	f, err := serveFake(addr, answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f
}
