// Package ipfs is shared storage in IPFS, through the RPC API of a Kubo node. Each member may have a node of its own.
//
// Locations: "ipfs:" and the payload's CID. A payload is one raw block, so that its CID is its SHA-256: what a node answers is checked against it.
// Kubo makes such blocks of at most 1 MiB, which is the largest payload.
package ipfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/sharedstorage"
)

const (
	// Kind begins the locations of this storage.
	Kind = "ipfs:"
	// MaxBlock is the largest block that Kubo's chunker makes.
	MaxBlock = 1 << 20

	maxAnswer   = 64 << 10 // of add, and of errors
	callTimeout = 30 * time.Second
)

// Storage is a Kubo node.
type Storage struct {
	base   string
	client *http.Client
}

// New uses the RPC API at an address, such as http://127.0.0.1:5001.
func New(base string) *Storage {
	return &Storage{base: strings.TrimSuffix(base, "/"), client: &http.Client{Timeout: callTimeout}}
}

// CID is the CID (version 1) of a raw block with this SHA-256.
func CID(payload []byte) string {
	digest := sha256.Sum256(payload)
	// Version 1, codec raw, then the multihash: SHA-256 of 32 bytes.
	return "b" + lowerBase32.EncodeToString(append([]byte{0x01, 0x55, 0x12, 0x20}, digest[:]...))
}

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Put adds the payload to the node, which keeps it pinned.
func (s *Storage) Put(ctx context.Context, batch uuid.UUID, payload []byte) (sharedstorage.Placement, error) {
	if len(payload) > MaxBlock {
		return sharedstorage.Placement{}, fmt.Errorf("%w: %d bytes, at most %d", sharedstorage.ErrTooLarge, len(payload), MaxBlock)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", batch.String())
	if err != nil {
		return sharedstorage.Placement{}, fmt.Errorf("make the form: %w", err)
	}
	_, _ = part.Write(payload) // a buffer takes everything
	_ = form.Close()
	query := url.Values{
		"cid-version": {"1"}, "raw-leaves": {"true"}, "chunker": {"size-" + strconv.Itoa(MaxBlock)}, "pin": {"true"}, "quieter": {"true"},
	}
	answer, err := s.call(ctx, "add", query, &body, form.FormDataContentType(), maxAnswer)
	if err != nil {
		return sharedstorage.Placement{}, err
	}
	var added struct{ Hash string }
	if err := json.Unmarshal(answer, &added); err != nil {
		return sharedstorage.Placement{}, fmt.Errorf("add to IPFS: read the answer: %w", err)
	}
	if want := CID(payload); added.Hash != want {
		return sharedstorage.Placement{}, fmt.Errorf("add to IPFS: the node stored the payload as %.100q, and not as the raw block %s", added.Hash, want)
	}
	return sharedstorage.Placement{Location: Kind + added.Hash}, nil
}

// Get asks the node for the payload. What the node cannot find now may come later.
func (s *Storage) Get(ctx context.Context, _ uuid.UUID, p sharedstorage.Placement) ([]byte, error) {
	id, found := strings.CutPrefix(p.Location, Kind)
	if !found || !validCID(id) {
		return nil, fmt.Errorf("%w: the location %.80q names no raw block", sharedstorage.ErrUnusable, p.Location)
	}
	// One byte more than there may be, to notice a longer one.
	query := url.Values{"arg": {id}, "length": {strconv.Itoa(MaxBlock + 1)}}
	payload, err := s.call(ctx, "cat", query, nil, "", MaxBlock+1)
	if err != nil {
		return nil, err
	}
	if len(payload) > MaxBlock || CID(payload) != id {
		return nil, fmt.Errorf("get from IPFS: the node's answer for %s is another block", id)
	}
	return payload, nil
}

func validCID(id string) bool {
	rest, found := strings.CutPrefix(id, "b")
	raw, err := lowerBase32.DecodeString(rest)
	return found && err == nil && len(raw) == 36 && bytes.Equal(raw[:4], []byte{0x01, 0x55, 0x12, 0x20}) && lowerBase32.EncodeToString(raw) == rest
}

// call does one call of the RPC API, and reads at most limit bytes of the answer.
func (s *Storage) call(ctx context.Context, method string, query url.Values, body io.Reader, contentType string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/api/v0/"+method+"?"+query.Encode(), body)
	if err != nil {
		return nil, fmt.Errorf("ask the IPFS node to %s: %w", method, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the IPFS node to %s: %w", method, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("ask the IPFS node to %s: %w", method, err)
	}
	if response.StatusCode != http.StatusOK {
		var problem struct{ Message string }
		_ = json.Unmarshal(answer, &problem)
		return nil, fmt.Errorf("ask the IPFS node to %s: it answered %s %.200q", method, response.Status, problem.Message)
	}
	return answer, nil
}

// MaxPayload implements sharedstorage.Storage.
func (s *Storage) MaxPayload() int { return MaxBlock }
