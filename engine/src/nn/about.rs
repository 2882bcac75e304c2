//! What a person should know about the kinds of feed-forward sublayers: shown by `braid list` and by the window.

use super::feed_forward::FeedForwardConfig;
use super::residual::About;

const SWIGLU: About = About {
    summary: "a gated network on every token, with SiLU in the gate",
    paper: "GLU Variants Improve Transformer, arXiv 2002.05202",
    equations: "F(x) = W_down ( silu(W_gate x) * W_up x )",
    choices: &["The hidden width is 64 ceil(8 width / 3 / 64), unless model.ffn is set."],
};

const MOE: About = About {
    summary: "several such networks (experts), of which each token uses a few",
    paper: "Switch Transformers, arXiv 2101.03961; DeepSeek-V3, arXiv 2412.19437",
    equations: "\
z    = W_g x,   E experts U_e, each a swiglu
F(x) = sum of g_e U_e(x) over the k selected experts + shared experts
softmax_topk         k largest of p = softmax(z);  g_e = p_e
softmax_topk_renorm  the same;  g = softmax of the selected logits
sigmoid_bias         k largest of s + b, s = sigmoid(z);
                     g_e = routed_scale s_e / sum of the selected s
balance loss         aux_loss E sum_e f_e P_e;  f share of tokens, P mean p
z-loss               z_loss mean logsumexp(z)^2",
    choices: &[
        "No expert has a capacity: nothing is dropped.",
        "With several experts a token, f counts pairs of token and expert, so that a balanced layer loses aux_loss for any k.",
        "The losses of all layers are added up.",
        "The balance loss of sigmoid_bias counts the selection that was made, the bias included; the formula of the paper \
         has scores without it.",
    ],
};

impl FeedForwardConfig {
    /// What to know about the kind.
    #[must_use]
    pub fn about(&self) -> About {
        match self {
            Self::Swiglu {} => SWIGLU,
            Self::Moe { .. } => MOE,
        }
    }
}
