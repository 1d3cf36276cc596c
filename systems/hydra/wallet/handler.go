package wallet

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/webguard"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

//go:embed page
var page embed.FS

const (
	maxBody = 4 << 10
	// maxID bounds a client's idempotency key, which gets a prefix.
	maxID = 100
)

// policy is the page's Content-Security-Policy: no external and no inline content.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri " +
	"'none'; form-action 'none'; frame-ancestors 'none'"

// Server serves the wallet over HTTP.
type Server struct {
	wallet  *Wallet
	cloud   string
	log     *slog.Logger
	mux     *http.ServeMux
	guarded http.Handler
}

// NewServer serves a wallet process of a cloud.
func NewServer(w *Wallet, cloud string, log *slog.Logger) *Server {
	s := &Server{wallet: w, cloud: cloud, log: log, mux: http.NewServeMux()}
	files, _ := fs.Sub(page, "page") // the directory is embedded
	s.mux.Handle("/", http.FileServerFS(files))
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s.mux.HandleFunc("GET /api/accounts", s.list)
	s.mux.HandleFunc("GET /api/accounts/{name}", s.account)
	s.mux.HandleFunc("GET /api/accounts/{name}/history", s.history)
	s.mux.HandleFunc("GET /api/sum", s.sum)
	s.mux.HandleFunc("POST /api/accounts", s.write(func(ctx context.Context, id string, o order) (Source, error) {
		return s.wallet.Open(ctx, id, o.Name)
	}, "name"))
	s.mux.HandleFunc("POST /api/deposits", s.write(func(ctx context.Context, id string, o order) (Source, error) {
		return s.wallet.Deposit(ctx, id, o.To, o.Amount)
	}, "to", "amount_cents"))
	s.mux.HandleFunc("POST /api/transfers", s.write(func(ctx context.Context, id string, o order) (Source, error) {
		return s.wallet.Transfer(ctx, id, o.From, o.To, o.Amount)
	}, "from", "to", "amount_cents"))
	s.mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, fmt.Errorf("%w: %s %s", errNoPath, r.Method, r.URL.Path))
	})
	s.setGuard(nil, nil)
	return s
}

// setGuard accepts the host names of hosts and the listen address (nil: loopback). Other sites may only link here.
func (s *Server) setGuard(listen net.Addr, hosts []string) {
	g := webguard.New(listen, hosts...)
	g.Links = func(path string) bool { return !strings.HasPrefix(path, "/api/") }
	s.guarded = g.Protect(s.mux, s.refuse)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Hydra-Wallet-Cloud", s.cloud)
	s.guarded.ServeHTTP(w, r)
}

type answeredBy struct {
	Wallet string `json:"wallet"`
	Source
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	accounts, a, err := s.wallet.List(r.Context())
	s.answer(w, map[string]any{"accounts": accounts}, a, err)
}

func (s *Server) account(w http.ResponseWriter, r *http.Request) {
	account, a, err := s.wallet.Find(r.Context(), r.PathValue("name"))
	s.answer(w, map[string]any{"account": account}, a, err)
}

func (s *Server) history(w http.ResponseWriter, r *http.Request) {
	entries, a, err := s.wallet.History(r.Context(), r.PathValue("name"))
	s.answer(w, map[string]any{"entries": entries}, a, err)
}

func (s *Server) sum(w http.ResponseWriter, r *http.Request) {
	sum, a, err := s.wallet.Sum(r.Context())
	s.answer(w, map[string]any{"sum": sum}, a, err)
}

type order struct {
	Name   string `json:"name"`
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int64  `json:"amount_cents"`
}

// write handles a write. It requires an idempotency key, so that a client without an answer can retry.
func (s *Server) write(do func(context.Context, string, order) (Source, error), fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o, id, err := parseOrder(w, r, fields)
		if err != nil {
			s.fail(w, err)
			return
		}
		a, err := do(r.Context(), "wallet/"+id, o)
		s.answer(w, map[string]any{"done": true}, a, err)
	}
}

var (
	errNoPath = errors.New("no such path")
	errMedia  = errors.New("body is not application/json")
)

func parseOrder(w http.ResponseWriter, r *http.Request, fields []string) (o order, id string, err error) {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(media) != "application/json" {
		return o, "", errMedia
	}
	id = r.Header.Get(api.HeaderRequestID)
	if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return o, "", fmt.Errorf("%w: header %s must be 1 to %d printable characters, the same in every retry", ErrInvalid,
			api.HeaderRequestID, maxID)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return o, "", err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil {
		return o, "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for _, f := range fields {
		if _, ok := given[f]; !ok {
			return o, "", fmt.Errorf("%w: %s is missing", ErrInvalid, f)
		}
		delete(given, f)
	}
	for f := range given {
		return o, "", fmt.Errorf("%w: unknown field %.40q", ErrInvalid, f)
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return o, "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return o, id, nil
}

func (s *Server) answer(w http.ResponseWriter, body map[string]any, a Source, err error) {
	if err != nil {
		s.fail(w, err)
		return
	}
	body["answered_by"] = answeredBy{s.cloud, a}
	s.send(w, http.StatusOK, body)
}

// statuses map errors to answers; the first match counts.
var statuses = []struct {
	is     error
	status int
	code   string
}{
	{errNoPath, http.StatusNotFound, api.CodeNotFound},
	{errMedia, http.StatusUnsupportedMediaType, api.CodeBadRequest},
	{ErrInvalid, http.StatusBadRequest, api.CodeBadRequest},
	{ErrNoAccount, http.StatusNotFound, "no_account"},
	{ErrTaken, http.StatusConflict, "taken"},
	{ErrInsufficient, http.StatusConflict, "insufficient"},
	{ErrTooMuch, http.StatusConflict, "too_much"},
	{hydraclient.ErrInDoubt, http.StatusGatewayTimeout, api.CodeInDoubt},
	{hydraclient.ErrOverloaded, http.StatusServiceUnavailable, api.CodeOverloaded},
	{hydraclient.ErrUnavailable, http.StatusServiceUnavailable, api.CodeUnavailable},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, api.CodeInDoubt},
}

func (s *Server) fail(w http.ResponseWriter, err error) {
	status, code, message := http.StatusInternalServerError, api.CodeInternal, "the wallet failed; its log says why"
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		status, code, message = http.StatusRequestEntityTooLarge, api.CodeTooLarge, "the body is too large"
	}
	for _, known := range statuses {
		if errors.Is(err, known.is) {
			status, code = known.status, known.code
			// Customers do not see the data layer's messages.
			message = known.is.Error()
			if known.is == ErrInvalid || known.is == errNoPath {
				message = err.Error()
			}
			break
		}
	}
	if status >= http.StatusInternalServerError {
		s.log.Warn("a request failed", "status", status, "error", err, "advice", advice.Of(err))
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	s.send(w, status, map[string]any{"code": code, "message": message, "answered_by": answeredBy{Wallet: s.cloud}})
}

func (s *Server) refuse(w http.ResponseWriter, err error) {
	p := api.GuardProblem(err)
	s.send(w, webguard.Status(err), map[string]any{"code": p.Code, "message": p.Message, "answered_by": answeredBy{Wallet: s.cloud}})
}

func (s *Server) send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.log.Debug("answering", "error", err)
	}
}

const (
	headerTimeout  = 10 * time.Second
	requestTimeout = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	grace          = 10 * time.Second
)

// Serve serves on l, under additional host names, until ctx ends. Requests in progress then finish.
func Serve(ctx context.Context, l net.Listener, s *Server, hosts ...string) error {
	s.setGuard(l.Addr(), hosts)
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving the wallet: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = fmt.Errorf("waiting for requests in progress: %w", err)
	}
	<-ended // http.ErrServerClosed, which Shutdown asked for
	return err
}
