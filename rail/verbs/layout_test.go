//go:build linux && amd64 && !noverbs

package verbs

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLayout compares each number that the C headers gave with the Go structures.
func TestLayout(t *testing.T) {
	have := map[string]uintptr{
		"ibv_context.ops.poll_cq":         contextPollCQ,
		"ibv_context.ops.req_notify_cq":   contextArm,
		"ibv_context.ops.post_send":       contextPostSend,
		"ibv_context.ops.post_recv":       contextPostRecv,
		"ibv_qp.qp_num":                   queueNumber,
		"ibv_mr.lkey":                     memoryLocalKey,
		"ibv_mr.rkey":                     memoryRemoteKey,
		"ibv_comp_channel.fd":             channelFD,
		"ibv_sge":                         unsafe.Sizeof(sge{}),
		"ibv_sge.length":                  unsafe.Offsetof(sge{}.length),
		"ibv_sge.lkey":                    unsafe.Offsetof(sge{}.key),
		"ibv_send_wr":                     unsafe.Sizeof(sendRequest{}),
		"ibv_send_wr.sg_list":             unsafe.Offsetof(sendRequest{}.list),
		"ibv_send_wr.num_sge":             unsafe.Offsetof(sendRequest{}.count),
		"ibv_send_wr.opcode":              unsafe.Offsetof(sendRequest{}.op),
		"ibv_send_wr.send_flags":          unsafe.Offsetof(sendRequest{}.flags),
		"ibv_send_wr.wr.rdma.remote_addr": unsafe.Offsetof(sendRequest{}.remote),
		"ibv_send_wr.wr.rdma.rkey":        unsafe.Offsetof(sendRequest{}.key),
		"ibv_recv_wr":                     unsafe.Sizeof(receiveRequest{}),
		"ibv_recv_wr.sg_list":             unsafe.Offsetof(receiveRequest{}.list),
		"ibv_recv_wr.num_sge":             unsafe.Offsetof(receiveRequest{}.count),
		"ibv_wc":                          unsafe.Sizeof(completion{}),
		"ibv_wc.status":                   unsafe.Offsetof(completion{}.status),
		"ibv_wc.opcode":                   unsafe.Offsetof(completion{}.op),
		"ibv_wc.byte_len":                 unsafe.Offsetof(completion{}.length),
		"ibv_wc.qp_num":                   unsafe.Offsetof(completion{}.queue),
		"ibv_qp_init_attr":                unsafe.Sizeof(queueInit{}),
		"ibv_qp_init_attr.send_cq":        unsafe.Offsetof(queueInit{}.sendCQ),
		"ibv_qp_init_attr.recv_cq":        unsafe.Offsetof(queueInit{}.receiveCQ),
		"ibv_qp_init_attr.cap":            unsafe.Offsetof(queueInit{}.maxSend),
		"ibv_qp_init_attr.qp_type":        unsafe.Offsetof(queueInit{}.kind),
		"ibv_qp_init_attr.sq_sig_all":     unsafe.Offsetof(queueInit{}.signalAll),
		"ibv_global_route":                unsafe.Sizeof(route{}),
		"ibv_global_route.sgid_index":     unsafe.Offsetof(route{}.index),
		"ibv_global_route.hop_limit":      unsafe.Offsetof(route{}.hopLimit),
		"ibv_ah_attr":                     unsafe.Sizeof(address{}),
		"ibv_ah_attr.dlid":                unsafe.Offsetof(address{}.lid),
		"ibv_ah_attr.is_global":           unsafe.Offsetof(address{}.global),
		"ibv_ah_attr.port_num":            unsafe.Offsetof(address{}.port),
		"ibv_qp_attr":                     unsafe.Sizeof(queueAttr{}),
		"ibv_qp_attr.path_mtu":            unsafe.Offsetof(queueAttr{}.mtu),
		"ibv_qp_attr.rq_psn":              unsafe.Offsetof(queueAttr{}.receivePSN),
		"ibv_qp_attr.sq_psn":              unsafe.Offsetof(queueAttr{}.sendPSN),
		"ibv_qp_attr.dest_qp_num":         unsafe.Offsetof(queueAttr{}.destQueue),
		"ibv_qp_attr.qp_access_flags":     unsafe.Offsetof(queueAttr{}.access),
		"ibv_qp_attr.ah_attr":             unsafe.Offsetof(queueAttr{}.address),
		"ibv_qp_attr.pkey_index":          unsafe.Offsetof(queueAttr{}.pkey),
		"ibv_qp_attr.max_rd_atomic":       unsafe.Offsetof(queueAttr{}.reads),
		"ibv_qp_attr.max_dest_rd_atomic":  unsafe.Offsetof(queueAttr{}.destReads),
		"ibv_qp_attr.min_rnr_timer":       unsafe.Offsetof(queueAttr{}.rnrTimer),
		"ibv_qp_attr.port_num":            unsafe.Offsetof(queueAttr{}.port),
		"ibv_qp_attr.timeout":             unsafe.Offsetof(queueAttr{}.timeout),
		"ibv_qp_attr.retry_cnt":           unsafe.Offsetof(queueAttr{}.retries),
		"ibv_qp_attr.rnr_retry":           unsafe.Offsetof(queueAttr{}.rnrRetries),
		"ibv_port_attr":                   unsafe.Sizeof(portAttr{}),
		"ibv_port_attr.active_mtu":        unsafe.Offsetof(portAttr{}.activeMTU),
	}
	text, err := os.ReadFile("testdata/layout.txt")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, len(have))
	for _, line := range lines {
		name, number, _ := strings.Cut(line, " ")
		want, err := strconv.Atoi(number)
		require.NoError(t, err, line)
		got, known := have[name]
		assert.True(t, known, "%s is not compared", name)
		assert.EqualValues(t, want, got, name)
	}
}
