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
	"/files/open":  openFile,
	"/files/write": writeFile,
	"/files/append": newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error {
		return f.Append(ctx, q.Path, q.Data)
	})),
	"/files/mkdir":  newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error { return f.MakeDir(ctx, q.Path) })),
	"/files/remove": newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error { return f.Remove(ctx, q.Path) })),
	"/files/rename": newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error { return f.Rename(ctx, q.Path, q.To) })),
	"/files/own": newCall(findFiles, withoutResult(func(ctx context.Context, f files.System, q rpc.FileRequest) error {
		return f.Own(ctx, q.Path, q.UID, q.GID)
	})),
	"/files/stat": newCall(findFiles, func(ctx context.Context, f files.System, q rpc.FileRequest) (files.Info, error) {
		return f.Stat(ctx, q.Path)
	}),
	"/files/list": newCall(findFiles, func(ctx context.Context, f files.System, q rpc.FileRequest) ([]files.Info, error) {
		return f.List(ctx, q.Path)
	}),
	"/files/space": newCall(findFiles, func(ctx context.Context, f files.System, q rpc.FileRequest) (files.Space, error) {
		return f.Space(ctx, q.Path)
	}),
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

func decodeFileRequest(s *server, x *exchange) (files.System, rpc.FileRequest, error) {
	q, err := decodeParams[rpc.FileRequest](x)
	if err != nil {
		return nil, q, err
	}
	f, err := findFiles(s, x.of)
	return f, q, err
}

// openFile streams the file. A trailer reports a read error.
func openFile(ctx context.Context, s *server, x *exchange) {
	f, q, err := decodeFileRequest(s, x)
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
	if !x.answer(empty{}, nil) {
		return
	}
	if _, err := io.Copy(x.w, r); err != nil {
		x.w.Header().Set(http.TrailerPrefix+rpc.FailureTrailer, url.PathEscape(string(encodeFailure(err))))
	}
}

// writeFile replaces a file by the request's stream. If the stream breaks off, the file stays unchanged.
func writeFile(ctx context.Context, s *server, x *exchange) {
	f, q, err := decodeFileRequest(s, x)
	if err == nil {
		err = f.Write(ctx, q.Path, fs.FileMode(q.Mode), x.in)
	}
	x.answer(empty{}, err)
}

func encodeFailure(err error) []byte {
	if err == nil {
		return nil
	}
	text, _ := json.Marshal(rpc.NewFailure(err)) // texts and numbers
	return text
}
