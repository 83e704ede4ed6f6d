//! The kind of file system that a store stands on: whether it may be there, and whether it stays.

use std::path::Path;

/// A kind of file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Of this machine; its name, or the system's number for it.
    Local(String),
    /// In memory: what stands there is gone after a reboot.
    Volatile(&'static str),
    /// One that a second machine may have mounted too, or whose locks and shared memory are somebody else's to keep.
    Shared(&'static str),
    /// The system does not tell.
    Unknown,
}

impl FileSystem {
    /// The kind by the number that statfs gives.
    ///
    /// FUSE is shared whatever is behind it: virtiofs, the shares of container and virtual machines and most network file
    /// systems in user space report the same number, and its locks and shared memory are the server's to keep.
    #[cfg(target_os = "linux")]
    pub fn of(folder: &Path) -> Self {
        let Ok(found) = rustix::fs::statfs(folder) else { return Self::Unknown };
        // From the kernel's include/uapi/linux/magic.h and the file systems' own sources. The field is signed on
        // some machines; the numbers are 32 bits wide on all of them.
        match found.f_type as u32 {
            0x0000_6969 => Self::Shared("NFS"),
            0x0000_517b | 0xff53_4d42 | 0xfe53_4d42 => Self::Shared("SMB"),
            0x0102_1997 => Self::Shared("9P"),
            0x6573_5546 => Self::Shared("FUSE (virtiofs, a share of a virtual machine, or a network file system)"),
            0x00c3_6400 => Self::Shared("Ceph"),
            0x5346_414f | 0x6b41_4653 => Self::Shared("AFS"),
            0x7375_7245 => Self::Shared("Coda"),
            0x0bd0_0bd0 => Self::Shared("Lustre"),
            0x0116_1970 => Self::Shared("GFS2"),
            0x7461_636f => Self::Shared("OCFS2"),
            0x786f_4256 => Self::Shared("a share of VirtualBox"),
            0xbacb_acbc => Self::Shared("a share of VMware"),
            0x0102_1994 => Self::Volatile("tmpfs"),
            0x8584_58f6 => Self::Volatile("ramfs"),
            0x0000_ef53 => Self::Local("ext4".to_owned()),
            0x5846_5342 => Self::Local("XFS".to_owned()),
            0x9123_683e => Self::Local("Btrfs".to_owned()),
            0x2fc1_2fc1 => Self::Local("ZFS".to_owned()),
            0xf2f5_2010 => Self::Local("F2FS".to_owned()),
            0x794c_7630 => Self::Local("overlayfs".to_owned()),
            other => Self::Local(format!("kind {other:#x}")),
        }
    }

    /// The system says whether it is local.
    #[cfg(target_os = "macos")]
    pub fn of(folder: &Path) -> Self {
        const MNT_LOCAL: u32 = 0x1000;
        match rustix::fs::statfs(folder) {
            Ok(found) if found.f_flags & MNT_LOCAL == 0 => Self::Shared("a network file system"),
            Ok(_) => Self::Local("a local disk".to_owned()),
            Err(_) => Self::Unknown,
        }
    }

    /// Nothing is known elsewhere.
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    pub fn of(_folder: &Path) -> Self {
        Self::Unknown
    }
}
