/* Privileged functions: they open the boxes, and drop the privileges. */
#ifndef PRIVILEGED_H
#define PRIVILEGED_H
#include "helper.h"

#define MAX_CAPABILITY 63 /* above those of current kernels */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* Set-user-ID bits and devices have no effect in these mounts. */
#define SAFE_FLAGS (MS_NOSUID | MS_NODEV)
#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif
#define STATFS_NOSYMFOLLOW 0x2000 /* as statfs(2) gives it back */

/* For mount_setattr, as in <linux/mount.h>, which some versions of <sys/mount.h> do not go together with. */
#define RECURSIVE 0x8000
struct attributes { uint64_t set, clear, propagation, users; };
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

/* privileges.c */
void leave_keyrings(void);
void join_cgroups(char **files, int count);
int restrict_main(int argc, char **argv);
int join_cgroups_main(int argc, char **argv);

/* mounts.c: takes a step of `init`; returns how many words after its name it used, or -1 for another step. */
int mount_step(const char *name, char **words, int left);
void mount_overlay(const char *layers, const char *target, unsigned long flags);

/* box_mounts.c: `root_step_words` is -1 for what is no step. */
int root_step_words(const char *name);
void take_root_step(const char *name, char **words);
void begin_root(void);
void enter_root(void);

/* box.c */
int run_box(char **words, const char *oom_score);
int box_main(int argc, char **argv);

/* Tally of a copied tree. `checksum` differs between trees, and does not depend on the order of the walk. */
struct tally { unsigned long long entries, bytes, checksum; };
extern struct tally copied;

/* copy_tree.c */
void copy_tree(const char *source, const char *target, uid_t uid, gid_t gid);
void copy_workspace(const char *source, const char *target, unsigned long long max_bytes);
void set_owner(int folder, const char *name, uid_t uid, gid_t gid);
void set_mode(int folder, const char *name, mode_t mode);
int count_main(int argc, char **argv);

/* tar_reader.c, tar_writer.c: members of an archive are named TREE/PATH, and `add_tree` says which folder a tree is. */
void add_tree(const char *name, const char *path);
void unpack(int in, uid_t uid, gid_t gid);
void pack(int out, const char *name, const char *source);
void pack_end(int out, int status);

int init_main(int argc, char **argv); /* box_init.c */
int open_paths_main(int argc, char **argv); /* open_paths.c */

#endif
