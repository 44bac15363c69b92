package ipfs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/sharedstorage/ipfs"
	"github.com/pactwire/pactwire/sharedstorage/storagetest"
)

// kubo answers add and cat as Kubo's RPC API does. It names content by what the test knows of CIDs.
type kubo struct {
	mu     sync.Mutex
	blocks map[string][]byte
	spoil  func([]byte) []byte // what cat answers instead
	name   func([]byte) string
}

func (k *kubo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, message string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"Message": message, "Code": 0, "Type": "error"})
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed) // as Kubo does
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	q := r.URL.Query()
	switch r.URL.Path {
	case "/api/v0/add":
		if q.Get("cid-version") != "1" || q.Get("raw-leaves") != "true" || q.Get("chunker") != "size-1048576" || q.Get("pin") != "true" {
			fail(http.StatusInternalServerError, "unexpected options "+r.URL.RawQuery)
			return
		}
		file, _, err := r.FormFile("file")
		if err != nil {
			fail(http.StatusBadRequest, err.Error())
			return
		}
		content, _ := io.ReadAll(file)
		name := k.name(content)
		k.blocks[name] = content
		_ = json.NewEncoder(w).Encode(map[string]string{"Name": name, "Hash": name, "Size": strconv.Itoa(len(content))})
	case "/api/v0/cat":
		content, known := k.blocks[q.Get("arg")]
		if !known {
			fail(http.StatusInternalServerError, "block was not found locally (offline): ipld: could not find "+q.Get("arg"))
			return
		}
		if k.spoil != nil {
			content = k.spoil(content)
		}
		if length, err := strconv.Atoi(q.Get("length")); err == nil {
			content = content[:min(length, len(content))]
		}
		_, _ = w.Write(content)
	default:
		http.NotFound(w, r)
	}
}

func start(t *testing.T) (*kubo, *ipfs.Storage) {
	t.Helper()
	k := &kubo{blocks: map[string][]byte{}, name: ipfs.CID}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	return k, ipfs.New(server.URL)
}

func TestStorage(t *testing.T) {
	_, s := start(t)
	storagetest.Run(t, s)
}

// The CIDs that `ipfs add --cid-version=1 --raw-leaves` prints for these contents.
func TestCIDsAreThoseOfIPFS(t *testing.T) {
	for content, want := range map[string]string{
		"":              "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
		"hello world\n": "bafkreifjjcie6lypi6ny7amxnfftagclbuxndqonfipmb64f2km2devei4",
	} {
		if got := ipfs.CID([]byte(content)); got != want {
			t.Errorf("%q: %s, want %s", content, got, want)
		}
	}
}

func TestWhatANodeAnswersIsChecked(t *testing.T) {
	k, s := start(t)
	ctx, payload := context.Background(), []byte("a payload")
	placement, err := s.Put(ctx, uuid.New(), payload)
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func([]byte) []byte{
		"another": func([]byte) []byte { return []byte("b payload") },
		"cut":     func(b []byte) []byte { return b[:3] },
		"endless": func([]byte) []byte { return bytes.Repeat([]byte("x"), 64<<20) },
	} {
		k.mu.Lock()
		k.spoil = spoil
		k.mu.Unlock()
		if _, err := s.Get(ctx, uuid.New(), placement); err == nil || errors.Is(err, sharedstorage.ErrUnusable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	k.mu.Lock()
	k.spoil, k.blocks = nil, map[string][]byte{}
	k.mu.Unlock()
	if _, err := s.Get(ctx, uuid.New(), placement); err == nil || errors.Is(err, sharedstorage.ErrUnusable) || !strings.Contains(err.Error(), "not found") {
		t.Errorf("missing: %v", err)
	}
	if _, err := s.Put(ctx, uuid.New(), payload); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(ctx, uuid.New(), placement); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("after it was there again: %q, %v", got, err)
	}
}

func TestANodeThatStoresOtherwiseIsNotTrusted(t *testing.T) {
	k, s := start(t)
	k.name = func([]byte) string { return "QmTp2hEo8eXRp6wg7jXv1BLCMh5a4F3B7buAUZNZUu772j" }
	if p, err := s.Put(context.Background(), uuid.New(), []byte("x")); err == nil {
		t.Errorf("placed at %s", p.Location)
	}
}

func TestLocationsThatAreNone(t *testing.T) {
	_, s := start(t)
	for _, location := range []string{
		"ipfs:", "ipfs:QmTp2hEo8eXRp6wg7jXv1BLCMh5a4F3B7buAUZNZUu772j", "ipfs:bafkrei", "ipfs:../x",
		"ipfs:BAFKREIHDWDCEFGH4DQKJV67UZCMW7OJEE6XEDZDETOJUZJEVTENXQUVYKU",
	} {
		if _, err := s.Get(context.Background(), uuid.New(), sharedstorage.Placement{Location: location}); !errors.Is(err, sharedstorage.ErrUnusable) {
			t.Errorf("%s: %v", location, err)
		}
	}
}
