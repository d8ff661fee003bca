//! The command lines that give a file or directory a layout.

use std::path::Path;

use stripewise_cluster::{FileSystem, size};

use crate::orangefs::Distribution;
use crate::{Component, NativeLayout, Stripe, cephfs, check};

/// One call of a tool: the program and its arguments.
pub type Call = Vec<String>;

/// The calls that make new files of the directory `path` (`is_dir`) inherit `layout`, or that make
/// `path` a new file with it.
///
/// CephFS's attribute is set on a file that exists and was never written; the tools of the other
/// systems create the file themselves.
///
/// # Errors
/// As [`check`].
pub fn calls(
    system: FileSystem,
    layout: &NativeLayout,
    path: &Path,
    is_dir: bool,
) -> Result<Vec<Call>, String> {
    check(system, layout)?;
    let path_text = path.to_string_lossy().into_owned();
    let stripe = &layout.components[0].stripe;
    Ok(match system {
        FileSystem::CephFs => {
            let kind = if is_dir { "dir" } else { "file" };
            let attribute = format!("ceph.{kind}.layout");
            vec![words(&["setfattr", "-n", &attribute, "-v", &cephfs::value(layout)?, &path_text])]
        }
        FileSystem::Lustre => vec![lustre(layout, path_text)],
        FileSystem::BeeGfs if is_dir && matches!(stripe, Stripe::Listed { .. }) => {
            return Err("only a new file can be given targets; a directory takes a storage pool".into());
        }
        FileSystem::BeeGfs => vec![beegfs(stripe, path_text, is_dir)],
        FileSystem::OrangeFs => orangefs(&Distribution::of(stripe)?, path, is_dir),
    })
}

/// [`calls`] as text for a shell; empty where [`check`] refuses the layout.
pub fn commands(system: FileSystem, layout: &NativeLayout, path: &Path, is_dir: bool) -> Vec<String> {
    let text = |call: Call| call.iter().map(|word| shell(word)).collect::<Vec<_>>().join(" ");
    calls(system, layout, path, is_dir).unwrap_or_default().into_iter().map(text).collect()
}

/// A remark on the commands of a file system, for a layout of files that take `layouts` in turn.
pub fn note(system: FileSystem, layouts: usize) -> Option<&'static str> {
    match system {
        FileSystem::CephFs => Some(
            "only on files that are empty and were never written; objects are placed by hash, so that stripes may share an OSD",
        ),
        FileSystem::Lustre if layouts > 1 => Some("Lustre itself spreads the files over its OSTs"),
        FileSystem::Lustre => None,
        FileSystem::BeeGfs => Some("for files created in the directory from then on; BeeGFS picks the targets"),
        FileSystem::OrangeFs => Some("inherited by files created in the directory from then on"),
    }
}

/// The call of `lfs setstripe`, with options as in lustre/doc/lfs-setstripe.1.
fn lustre(layout: &NativeLayout, path: String) -> Call {
    let mut call = words(&["lfs", "setstripe"]);
    let mut pool_before = false;
    for Component { end, stripe } in &layout.components {
        if layout.components.len() > 1 {
            call.extend(["-E".to_owned(), end.map_or("-1".to_owned(), size::format)]);
        }
        let (width, rest) = match stripe {
            Stripe::Even { width, count, pool } => {
                (width, (vec!["-c".to_owned(), count.to_string()], pool.as_ref()))
            }
            Stripe::Listed { width, servers } => (width, (vec!["-o".to_owned(), servers.join(",")], None)),
            Stripe::Varied { .. } | Stripe::Grouped { .. } => unreachable!("check() lets no such layout pass"),
        };
        call.extend(["-S".to_owned(), size::format(*width)]);
        call.extend(rest.0);
        match rest.1 {
            Some(pool) => call.extend(["-p".to_owned(), pool.clone()]),
            // A component without a pool would inherit that of the previous one.
            None if pool_before => call.extend(["-p".to_owned(), "none".to_owned()]),
            None => {}
        }
        pool_before = rest.1.is_some();
    }
    call.push(path);
    call
}

/// The call of `beegfs entry set` or `entry create file` of BeeGFS 8 (ctl/internal/cmd/entry in
/// ThinkParQ/beegfs-go), where K is 1000 and Ki 1024.
fn beegfs(stripe: &Stripe, path: String, is_dir: bool) -> Call {
    let mut call =
        words(if is_dir { &["beegfs", "entry", "set"] } else { &["beegfs", "entry", "create", "file"] });
    let chunk = |width: u64| {
        let text = size::format(width);
        format!("--chunk-size={}", if text.ends_with(|c: char| c.is_ascii_digit()) { text } else { text + "i" })
    };
    match stripe {
        Stripe::Even { width, count, pool } => {
            call.extend([format!("--num-targets={count}"), chunk(*width)]);
            call.extend(pool.iter().map(|pool| format!("--pool={pool}")));
        }
        Stripe::Listed { width, servers } => {
            call.extend([format!("--num-targets={}", servers.len()), chunk(*width)]);
            call.push(format!("--targets={}", servers.join(",")));
        }
        Stripe::Varied { .. } | Stripe::Grouped { .. } => unreachable!("check() lets no such layout pass"),
    }
    call.push(path);
    call
}

/// Hints as `pvfs2-xattr` of OrangeFS 2.10 sets them. A file takes its servers from
/// `pvfs2-touch -l`, because `pvfs2-touch` overrides the directory's list even without that option.
fn orangefs(distribution: &Distribution, path: &Path, is_dir: bool) -> Vec<Call> {
    let directory = if is_dir { path } else { path.parent().unwrap_or(Path::new("/")) };
    let directory = directory.to_string_lossy();
    let set = |key: &str, value: &str| {
        words(&["pvfs2-xattr", "-s", "-k", &format!("user.pvfs2.{key}"), "-v", value, &directory])
    };
    let mut calls = vec![set("dist_name", distribution.name), set("dist_params", &distribution.params)];
    match (distribution.server_list(), is_dir) {
        (Some(list), true) => calls.extend([set("layout", "00004"), set("server_list", &list)]),
        // 2: round robin over as many servers as there are datafiles.
        (None, _) => {
            calls.extend([set("layout", "00002"), set("num_dfiles", &distribution.datafiles.to_string())]);
        }
        (Some(_), false) => {}
    }
    if !is_dir {
        let mut touch = words(&["pvfs2-touch"]);
        touch.extend(distribution.servers.iter().flat_map(|servers| ["-l".to_owned(), servers.join(",")]));
        touch.push(path.to_string_lossy().into_owned());
        calls.push(touch);
    }
    calls
}

fn words(words: &[&str]) -> Call {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Quotes a word for a shell. Placeholders stay as they are, because they must be replaced anyway.
pub fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    let placeholder = text.trim_start_matches("--pool=").starts_with("POOL(") && text.ends_with(')');
    if placeholder || (!text.is_empty() && text.chars().all(plain)) {
        text.to_owned()
    } else if text.contains(['"', '\'', '$', '`', '\\', '!']) {
        format!("'{}'", text.replace('\'', "'\\''"))
    } else {
        format!("\"{text}\"")
    }
}
