/* Prints what layout.go says of libibverbs' structures, as the headers have it. */
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdio.h>

#define OFFSET(type, field) printf(#type "." #field " %zu\n", offsetof(struct type, field))
#define SIZE(type) printf(#type " %zu\n", sizeof(struct type))

int main(void)
{
	OFFSET(ibv_context, ops.poll_cq);
	OFFSET(ibv_context, ops.req_notify_cq);
	OFFSET(ibv_context, ops.post_send);
	OFFSET(ibv_context, ops.post_recv);
	OFFSET(ibv_qp, qp_num);
	OFFSET(ibv_mr, lkey);
	OFFSET(ibv_mr, rkey);
	OFFSET(ibv_comp_channel, fd);
	SIZE(ibv_sge);
	OFFSET(ibv_sge, length);
	OFFSET(ibv_sge, lkey);
	SIZE(ibv_send_wr);
	OFFSET(ibv_send_wr, sg_list);
	OFFSET(ibv_send_wr, num_sge);
	OFFSET(ibv_send_wr, opcode);
	OFFSET(ibv_send_wr, send_flags);
	OFFSET(ibv_send_wr, wr.rdma.remote_addr);
	OFFSET(ibv_send_wr, wr.rdma.rkey);
	SIZE(ibv_recv_wr);
	OFFSET(ibv_recv_wr, sg_list);
	OFFSET(ibv_recv_wr, num_sge);
	SIZE(ibv_wc);
	OFFSET(ibv_wc, status);
	OFFSET(ibv_wc, opcode);
	OFFSET(ibv_wc, byte_len);
	OFFSET(ibv_wc, qp_num);
	SIZE(ibv_qp_init_attr);
	OFFSET(ibv_qp_init_attr, send_cq);
	OFFSET(ibv_qp_init_attr, recv_cq);
	OFFSET(ibv_qp_init_attr, cap);
	OFFSET(ibv_qp_init_attr, qp_type);
	OFFSET(ibv_qp_init_attr, sq_sig_all);
	SIZE(ibv_global_route);
	OFFSET(ibv_global_route, sgid_index);
	OFFSET(ibv_global_route, hop_limit);
	SIZE(ibv_ah_attr);
	OFFSET(ibv_ah_attr, dlid);
	OFFSET(ibv_ah_attr, is_global);
	OFFSET(ibv_ah_attr, port_num);
	SIZE(ibv_qp_attr);
	OFFSET(ibv_qp_attr, path_mtu);
	OFFSET(ibv_qp_attr, rq_psn);
	OFFSET(ibv_qp_attr, sq_psn);
	OFFSET(ibv_qp_attr, dest_qp_num);
	OFFSET(ibv_qp_attr, qp_access_flags);
	OFFSET(ibv_qp_attr, ah_attr);
	OFFSET(ibv_qp_attr, pkey_index);
	OFFSET(ibv_qp_attr, max_rd_atomic);
	OFFSET(ibv_qp_attr, max_dest_rd_atomic);
	OFFSET(ibv_qp_attr, min_rnr_timer);
	OFFSET(ibv_qp_attr, port_num);
	OFFSET(ibv_qp_attr, timeout);
	OFFSET(ibv_qp_attr, retry_cnt);
	OFFSET(ibv_qp_attr, rnr_retry);
	SIZE(ibv_port_attr);
	OFFSET(ibv_port_attr, active_mtu);
	return 0;
}
