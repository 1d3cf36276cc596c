package agent

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"

	"skerry/internal/machine/files"
	"skerry/internal/machine/rpc"
)

var fileCalls = map[string]call{
	"/files/open":   open,
	"/files/write":  write,
	"/files/append": plain(ofFiles, told(func(ctx context.Context, f files.System, q rpc.File) error { return f.Append(ctx, q.Path, q.Data) })),
	"/files/mkdir":  plain(ofFiles, told(func(ctx context.Context, f files.System, q rpc.File) error { return f.MakeDir(ctx, q.Path) })),
	"/files/remove": plain(ofFiles, told(func(ctx context.Context, f files.System, q rpc.File) error { return f.Remove(ctx, q.Path) })),
	"/files/rename": plain(ofFiles, told(func(ctx context.Context, f files.System, q rpc.File) error { return f.Rename(ctx, q.Path, q.To) })),
	"/files/own":    plain(ofFiles, told(func(ctx context.Context, f files.System, q rpc.File) error { return f.Own(ctx, q.Path, q.UID, q.GID) })),
	"/files/stat":   plain(ofFiles, func(ctx context.Context, f files.System, q rpc.File) (files.Info, error) { return f.Stat(ctx, q.Path) }),
	"/files/list": plain(ofFiles, func(ctx context.Context, f files.System, q rpc.File) ([]files.Info, error) {
		return f.List(ctx, q.Path)
	}),
	"/files/space": plain(ofFiles, func(ctx context.Context, f files.System, q rpc.File) (files.Space, error) {
		return f.Space(ctx, q.Path)
	}),
}

// ofFiles are the files of a node's machine, or a part's.
func ofFiles(s *server, of rpc.Of) (files.System, error) {
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

// asksFile finds the files and what is asked of them.
func asksFile(s *server, x *exchange) (files.System, rpc.File, error) {
	q, err := asked[rpc.File](x)
	if err != nil {
		return nil, q, err
	}
	f, err := ofFiles(s, x.of)
	return f, q, err
}

// open answers with the file, and tells at its end where the reading failed.
func open(ctx context.Context, s *server, x *exchange) {
	f, q, err := asksFile(s, x)
	if err != nil {
		x.answer(nil, err)
		return
	}
	r, err := f.Open(ctx, q.Path, q.Offset)
	if err != nil {
		x.answer(nil, err)
		return
	}
	defer r.Close()
	if !x.answer(nothing{}, nil) {
		return
	}
	if _, err := io.Copy(x.w, r); err != nil {
		x.w.Header().Set(http.TrailerPrefix+rpc.Broken, url.PathEscape(string(ending(err))))
	}
}

// write makes a file of the request's stream. One that breaks off is no end: nothing is written then.
func write(ctx context.Context, s *server, x *exchange) {
	f, q, err := asksFile(s, x)
	if err == nil {
		err = f.Write(ctx, q.Path, fs.FileMode(q.Mode), x.in)
	}
	x.answer(nothing{}, err)
}

// ending is the Failure of an error in JSON, nothing for none.
func ending(err error) []byte {
	if err == nil {
		return nil
	}
	text, _ := json.Marshal(rpc.Tell(err)) // texts and numbers
	return text
}
