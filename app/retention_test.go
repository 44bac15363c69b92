package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pactwire/pactwire/store"
)

func TestRetentionOfANamespaceGoesBeforeTheCommonOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pactwire.yaml")
	text := "retention:\n  age: 720h\n  force: true\nnamespaces:\n  - name: own\n    retention:\n      count: 5000\n      force: false\n  - name: common\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(ModeDev, map[string]string{"config": path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{App: &App{cfg: cfg}}
	got := s.retention()
	if want := (store.Retention{Age: 720 * time.Hour, Count: 5000}); got["own"] != want {
		t.Errorf("own: %+v", got["own"])
	}
	if want := (store.Retention{Age: 720 * time.Hour, Force: true}); got["common"] != want {
		t.Errorf("common: %+v", got["common"])
	}
	var printed strings.Builder
	if err := cfg.Print(&printed); err != nil || !strings.Contains(printed.String(), "      count: \"5000\"\n") {
		t.Errorf("printed (%v):\n%s", err, &printed)
	}
	if _, err := Load(ModeDev, map[string]string{"retention-age": "-3h"}, nil); err == nil {
		t.Error("a negative age was taken")
	}
}
