package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The README's quick start and what builds on it, block by block, as a stranger pastes it.
func TestTheREADMEsQuickStartWorksWhenPasted(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	must(t, err)
	shared := t.TempDir()
	var blocks []string
	for _, title := range []string{"Quick start", "A typed client"} {
		_, rest, found := strings.Cut(string(text), "\n## "+title+"\n")
		section, _, _ := strings.Cut(rest, "\n## ")
		if !found {
			t.Fatalf("the README has no section %q", title)
		}
		for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
			// Two runs on one machine do not share a folder.
			blocks = append(blocks, strings.ReplaceAll(m[1], "/tmp/", shared+"/"))
		}
	}

	p := &process{dir: t.TempDir(), listen: "127.0.0.1:5000", rpc: "127.0.0.1:8545"}
	if !free(p.listen) || !free(p.rpc) {
		// Somebody is using the addresses: all but them is as it stands there.
		listen, rpc := freeAddress(t), freeAddress(t)
		t.Setenv("PACTWIRE_RPC_URL", "http://"+rpc)
		t.Setenv("PACTWIRE_URL", "http://"+listen)
		addresses := strings.NewReplacer(p.listen, listen, p.rpc, rpc)
		for i := range blocks {
			blocks[i] = addresses.Replace(blocks[i])
		}
		p.listen, p.rpc = listen, rpc
	}
	p.begin(t)
	defer p.interrupt(t)

	// The folder in which it is pasted: a clone after `make run`.
	folder := t.TempDir()
	path, err := binary()
	must(t, err)
	must(t, os.Mkdir(filepath.Join(folder, "bin"), 0o755))
	must(t, os.Symlink(path, filepath.Join(folder, "bin", "pactwire")))
	absolute, err := filepath.Abs(filepath.Join(root, "contracts"))
	must(t, err)
	must(t, os.Symlink(absolute, filepath.Join(folder, "contracts")))

	printed, err := shell(t.Context(), folder, blocks)
	if err != nil {
		t.Fatal(err)
	}
	// What each block must print, in the order of the blocks.
	want := [][]string{
		{`SimpleStorage is at 0x[0-9a-fA-F]{40}`},
		{`"name":"simple-storage"`, `"pathname":""`},
		{`"id":"`, `"message":"`, `"pathname":"set"`, `"state":"confirmed"`},
		{`"urls":\{"openapi":"http://127.0.0.1:\d+/api/v1/namespaces/default/apis/simple-storage/api/swagger.json"`, `"state":"confirmed"`},
		{`^\{"id":"[0-9a-f-]{36}"\}`, `"status":"Succeeded"`, `\{"output":"12345678901234567890123456789"\}$`},
		{`"name":"changed"`, `"firstEvent":"-1"`},
		{`"value":"3"`, `"value":"12345678901234567890123456789"`},
		{`"code":"invalid_request"`, `"path":"input.newValue"`},
		{`stored: 42`},
	}
	if len(printed) != len(want) {
		t.Fatalf("the quick start has %d blocks, want %d", len(printed), len(want))
	}
	for i, patterns := range want {
		for _, pattern := range patterns {
			if !regexp.MustCompile(pattern).MatchString(printed[i]) {
				t.Errorf("block %d printed\n%s\nwithout %s", i+1, printed[i], pattern)
			}
		}
	}
}
