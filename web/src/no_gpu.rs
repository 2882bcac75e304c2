//! What to say where WebGPU cannot be used.

use std::fmt::{self, Display};

/// Where the way to a device ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The page was not loaded safely: browsers then hide WebGPU.
    Secure,
    /// There is no `navigator.gpu`.
    Api,
    /// `requestAdapter()` gives null.
    Adapter,
    /// `requestDevice()` is refused.
    Device,
    /// There is a device, which computes on the processor.
    Hardware,
}

impl Missing {
    /// What `worker-start.js` found; `None` if a GPU opens.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "secure" => Some(Self::Secure),
            "api" => Some(Self::Api),
            "adapter" => Some(Self::Adapter),
            "device" => Some(Self::Device),
            "hardware" => Some(Self::Hardware),
            _ => None,
        }
    }
}

/// Browsers whose ways to WebGPU differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Browser {
    Chromium,
    Firefox,
    Safari,
    Other,
}

/// Which one this is, by its `navigator.userAgent`.
fn browser(agent: &str) -> Browser {
    // Chromium calls itself Safari too, and Edge and Opera Chromium; on iOS all of them are Safari inside.
    if agent.contains("iPhone") || agent.contains("iPad") {
        Browser::Safari
    } else if agent.contains("Firefox/") {
        Browser::Firefox
    } else if agent.contains("Chrome/") || agent.contains("Chromium/") {
        Browser::Chromium
    } else if agent.contains("Safari/") {
        Browser::Safari
    } else {
        Browser::Other
    }
}

/// The case, what to do in this browser, and what happens meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Advice<'a> {
    /// The case.
    pub missing: Missing,
    /// `navigator.userAgent`
    pub agent: &'a str,
}

impl Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let linux = self.agent.contains("Linux") && !self.agent.contains("Android");
        let browser = browser(self.agent);
        f.write_str(match self.missing {
            Missing::Secure => "Browsers give WebGPU only to pages that were loaded over https or from this computer.",
            Missing::Api => "This browser has no WebGPU (navigator.gpu is missing).",
            Missing::Adapter => "This browser has WebGPU, but offers no GPU (requestAdapter() gives nothing).",
            Missing::Device => "The browser offers a GPU, but refuses to open it (requestDevice() fails).",
            Missing::Hardware => "The browser's WebGPU is software here, slower than Braid's own code for the processor.",
        })?;
        f.write_str(" ")?;
        f.write_str(match (self.missing, browser) {
            (Missing::Secure, _) => "Open it with https.",
            (Missing::Api, Browser::Chromium) if linux => {
                "In Chrome on Linux, switch on chrome://flags/#enable-unsafe-webgpu, or update Chrome."
            }
            (Missing::Api, Browser::Chromium) => "Chrome and Edge have it from version 113 on: update the browser.",
            (Missing::Api, Browser::Firefox) => {
                "Firefox has it on Windows from version 141 on; elsewhere set dom.webgpu.enabled in about:config, \
                 or use Chrome or Edge."
            }
            (Missing::Api, Browser::Safari) => "Safari has it from version 26 on: update the system.",
            (Missing::Api, Browser::Other) => "Current versions of Chrome, Edge, Firefox and Safari have it.",
            (Missing::Adapter | Missing::Hardware, Browser::Chromium) => {
                "Switch on graphics acceleration in the browser's settings (System), update the GPU's driver, and see \
                 chrome://gpu for what else stands in the way."
            }
            (Missing::Adapter | Missing::Hardware, Browser::Firefox) => {
                "Switch on hardware acceleration in the settings (Performance), update the GPU's driver, and see \
                 about:support."
            }
            (Missing::Adapter | Missing::Hardware, _) => "Update the system and the GPU's driver.",
            (Missing::Device, _) => {
                "Close other pages that use the GPU, then reload; restart the browser if that does not help."
            }
        })?;
        f.write_str(
            " Meanwhile Braid trains on the processor: the small presets learn within minutes.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHROME: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";
    const EDGE: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0";
    const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0";
    const SAFARI: &str = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15";
    const CHROME_IOS: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/150.0 Mobile/15E148 Safari/604.1";

    #[test]
    fn browsers_are_told_apart() {
        let all = [CHROME, EDGE, FIREFOX, SAFARI, CHROME_IOS, "curl"].map(browser);
        assert_eq!(
            all,
            [
                Browser::Chromium,
                Browser::Chromium,
                Browser::Firefox,
                Browser::Safari,
                Browser::Safari,
                Browser::Other
            ]
        );
    }

    #[test]
    fn each_case_has_a_sentence_of_its_own_in_each_browser() {
        let mut seen = std::collections::HashSet::new();
        for missing in ["api", "adapter", "device", "secure", "hardware"].map(Missing::of) {
            let missing = missing.expect("a case");
            let mut cases = std::collections::HashSet::new();
            for agent in [CHROME, EDGE, FIREFOX, SAFARI] {
                let text = Advice { missing, agent }.to_string();
                assert!(text.ends_with("minutes."), "{text}");
                cases.insert(text.split('.').next().unwrap_or_default().to_owned());
            }
            assert_eq!(cases.len(), 1, "the case does not depend on the browser");
            seen.extend(cases);
        }
        assert_eq!(seen.len(), 5);
        assert_eq!(Missing::of(""), None);
    }
}
