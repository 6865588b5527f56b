use super::*;
use crate::trial::Folder;

const NOTHING: Steps = Steps {
    seclude: &|| Err(io::Error::from_raw_os_error(libc::EPERM)),
    execute: &|_| panic!("nothing is to be run"),
    mount: &|_, _| panic!("nothing is to be mounted"),
};

#[test]
fn without_mounts_of_its_own_nothing_is_made() {
    let scratch = Folder::new();
    let opened = FileSystem::open(scratch.path(), &Ground::Image(1 << 30), NOTHING);
    assert_eq!(opened.map(|_| ()).unwrap_err().code, "EPERM");
    assert!(crate::roots::names(scratch.path()).is_empty());
}

#[test]
fn an_image_has_its_blocks_and_takes_the_place_of_an_older_one() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Folder::new();
    let image = scratch.path().join(IMAGE);
    scratch.put(IMAGE, "an older one");
    let meta = new_image(&image, 1 << 20).unwrap().metadata().unwrap();
    assert_eq!(meta.len(), 1 << 20);
    assert!(meta.blocks() * 512 >= 1 << 20, "{} blocks", meta.blocks());
}

#[test]
fn only_an_image_of_the_same_size_is_used_again() {
    let scratch = Folder::new();
    let image = scratch.path().join(IMAGE);
    assert!(kept_image(&image, 8).is_none());
    scratch.put(IMAGE, "12345678");
    assert!(kept_image(&image, 8).is_some());
    assert!(kept_image(&image, 9).is_none());
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(&image, &link).unwrap();
    assert!(kept_image(&link, 8).is_none());
}

#[test]
fn what_is_formatted_is_told_to_the_program_as_arguments() {
    use std::cell::RefCell;
    let told = RefCell::new(Vec::new());
    let execute = |argv: &[&str]| {
        told.borrow_mut().push(argv.join("|"));
        Ok(())
    };
    let steps = Steps { execute: &execute, ..NOTHING };
    format(Path::new("/dev/loop7"), &["-K"], steps).unwrap();
    format(Path::new("/dev/a disk"), &[], steps).unwrap();
    assert_eq!(
        *told.borrow(),
        [
            "mkfs.xfs|-q|-m|crc=1,reflink=1|-K|/dev/loop7",
            "mkfs.xfs|-q|-m|crc=1,reflink=1|/dev/a disk",
        ]
    );
}

#[test]
fn a_device_with_objections_is_refused() {
    let wish = Wish { serial: Some("x"), overwrite: true };
    let at = Path::new("/nowhere");
    let error = on_device(Path::new("/dev/null"), wish, at, NOTHING).map(|_| ()).unwrap_err();
    assert_eq!(error.code, "ENOTBLK");
}

#[test]
fn a_ground_is_one_thing_or_the_other() {
    let path = Some(PathBuf::from("/dev/x"));
    let serial = Some("x".to_owned());
    assert_eq!(Ground::of(Some(8), None, None, false).unwrap(), Ground::Image(8));
    let device = Ground::of(None, path.clone(), serial.clone(), true).unwrap();
    assert!(matches!(device, Ground::Device { overwrite: true, .. }));
    for (bytes, path, serial) in
        [(None, None, None), (Some(8), path.clone(), serial), (None, path, None)]
    {
        assert_eq!(Ground::of(bytes, path, serial, false).unwrap_err().code, "bad-request");
    }
}
