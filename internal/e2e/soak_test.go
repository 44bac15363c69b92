package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// soakClients is how many WebSocket clients are connected during the soak.
const soakClients = 1000

// TestSoak runs one service for as long as PACTWIRE_TEST_SOAK says (make soak), with 1,000 WebSocket clients, a durable consumer and events all the while, and
// prints its memory: it must stay flat and below 300 MB.
func TestSoak(t *testing.T) {
	given := os.Getenv("PACTWIRE_TEST_SOAK")
	if given == "" {
		t.Skip("PACTWIRE_TEST_SOAK says how long")
	}
	long, err := time.ParseDuration(given)
	must(t, err)
	c := newCluster(t, 1)
	pid := c.replicas[0].cmd.Process.Pid
	idle := residentMB(t, pid)
	var frames atomic.Int64
	var clients sync.WaitGroup
	var sockets []*websocket.Conn
	for range soakClients {
		socket, response, err := websocket.DefaultDialer.Dial("ws://"+c.replicas[0].listen+"/ws?namespace=default&ephemeral&autoack&filter.events=received", nil)
		must(t, err)
		response.Body.Close()
		sockets = append(sockets, socket)
		clients.Go(func() {
			for {
				if _, _, err := socket.ReadMessage(); err != nil {
					return
				}
				frames.Add(1)
			}
		})
	}
	connected := residentMB(t, pid)
	emitting, consuming := emitNumbers(c, 200*time.Millisecond), consumeNumbers(c)
	began, cpuBefore := time.Now(), cpuSeconds(t, pid)
	t.Logf("memory: %d MB without clients, %d MB with %d clients", idle, connected, soakClients)
	const looks = 12
	var memory []int
	for range looks {
		time.Sleep(long / looks) // the soak's own time
		memory = append(memory, residentMB(t, pid))
		t.Logf("after %s: %d MB, %d frames", time.Since(began).Round(time.Second), memory[len(memory)-1], frames.Load())
	}
	cpu := cpuSeconds(t, pid) - cpuBefore
	last := emitting.stop()
	consuming.finish(last)
	for _, socket := range sockets {
		socket.Close()
	}
	clients.Wait()
	early, late := average(memory[looks/4:looks/2]), average(memory[3*looks/4:])
	t.Logf("%d events, %d frames to %d clients; %.1f µs of CPU a frame; memory %d MB in the second quarter, %d MB in the last", last, frames.Load(), soakClients,
		cpu*1e6/float64(frames.Load()), early, late)
	if late > early+early/4+10 {
		t.Errorf("the memory grew from %d MB to %d MB", early, late)
	}
	if late > 300 {
		t.Errorf("the memory is %d MB", late)
	}
	if least := int64(last) * soakClients * 95 / 100; frames.Load() < least {
		t.Errorf("%d frames came, want at least %d", frames.Load(), least)
	}
}

func average(list []int) int {
	sum := 0
	for _, n := range list {
		sum += n
	}
	return sum / len(list)
}

// residentMB is the memory of a process.
func residentMB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("the memory of a process cannot be read here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kb, err := strconv.Atoi(fields[1])
			must(t, err)
			return kb / 1024
		}
	}
	t.Fatal("the process shows no memory")
	return 0
}

// cpuSeconds is the time that a process has used of all processors.
func cpuSeconds(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	const user, system, perSecond = 11, 12, 100
	var ticks float64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseFloat(fields[i], 64)
		must(t, err)
		ticks += n
	}
	return ticks / perSecond
}
