// e_1_2_1_3_16_16: in1 tmp0
void e_1_2_1_3_16_16(float* restrict data0, float* restrict data1) {
  for (int ridx4 = 0; ridx4 < 6; ridx4++) {
    long alu1 = (((long)ridx4)*256L);
    for (int ridx8 = 0; ridx8 < 16; ridx8++) {
      long alu2 = ((long)ridx8);
      long alu3 = (alu1+(alu2*16L));
      float val4 = data0[alu3];
      data1[(alu1+alu2)] = (val4*2.0f);
      float val5 = data0[(alu3+1L)];
      data1[((alu1+16L)+alu2)] = (val5*2.0f);
      float val6 = data0[(alu3+2L)];
      data1[((alu1+32L)+alu2)] = (val6*2.0f);
      float val7 = data0[(alu3+3L)];
      data1[((alu1+48L)+alu2)] = (val7*2.0f);
      float val8 = data0[(alu3+4L)];
      data1[((alu1+64L)+alu2)] = (val8*2.0f);
      float val9 = data0[(alu3+5L)];
      data1[((alu1+80L)+alu2)] = (val9*2.0f);
      float val10 = data0[(alu3+6L)];
      data1[((alu1+96L)+alu2)] = (val10*2.0f);
      float val11 = data0[(alu3+7L)];
      data1[((alu1+112L)+alu2)] = (val11*2.0f);
      float val12 = data0[(alu3+8L)];
      data1[((alu1+128L)+alu2)] = (val12*2.0f);
      float val13 = data0[(alu3+9L)];
      data1[((alu1+144L)+alu2)] = (val13*2.0f);
      float val14 = data0[(alu3+10L)];
      data1[((alu1+160L)+alu2)] = (val14*2.0f);
      float val15 = data0[(alu3+11L)];
      data1[((alu1+176L)+alu2)] = (val15*2.0f);
      float val16 = data0[(alu3+12L)];
      data1[((alu1+192L)+alu2)] = (val16*2.0f);
      float val17 = data0[(alu3+13L)];
      data1[((alu1+208L)+alu2)] = (val17*2.0f);
      float val18 = data0[(alu3+14L)];
      data1[((alu1+224L)+alu2)] = (val18*2.0f);
      float val19 = data0[(alu3+15L)];
      data1[((alu1+240L)+alu2)] = (val19*2.0f);
    }
  }
}

// r_1_2_48_48: in0 tmp0 tmp1
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

enum {r_1_2_48_48_steps = 8};
void r_1_2_48_48(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx17 = first; ridx17 < last; ridx17++) {
    long alu1 = ((long)ridx17);
    long alu2 = (alu1*288L);
    long alu3 = (alu1*96L);
    long alu4 = (alu2+48L);
    long alu5 = (alu2+96L);
    long alu6 = (alu2+144L);
    long alu7 = (alu2+192L);
    long alu8 = (alu2+240L);
    for (int ridx0 = 0; ridx0 < 2; ridx0++) {
      long alu9 = ((long)ridx0);
      long alu10 = (alu9*2304L);
      long alu11 = (alu9*768L);
      for (int ridx6 = 0; ridx6 < 3; ridx6++) {
        long alu12 = ((long)ridx6);
        long alu13 = (alu12*16L);
        f32x8 acc0;
        acc0 = (0.0f-(f32x8){});
        long alu14 = (alu12*256L);
        f32x8 acc1;
        acc1 = (0.0f-(f32x8){});
        f32x8 acc2;
        acc2 = (0.0f-(f32x8){});
        f32x8 acc3;
        acc3 = (0.0f-(f32x8){});
        f32x8 acc4;
        acc4 = (0.0f-(f32x8){});
        f32x8 acc5;
        acc5 = (0.0f-(f32x8){});
        f32x8 acc6;
        acc6 = (0.0f-(f32x8){});
        f32x8 acc7;
        acc7 = (0.0f-(f32x8){});
        f32x8 acc8;
        acc8 = (0.0f-(f32x8){});
        f32x8 acc9;
        acc9 = (0.0f-(f32x8){});
        f32x8 acc10;
        acc10 = (0.0f-(f32x8){});
        f32x8 acc11;
        acc11 = (0.0f-(f32x8){});
        #pragma GCC unroll 4
        for (int ridx3 = 0; ridx3 < 16; ridx3++) {
          f32x8 val15 = acc0;
          long alu16 = ((long)ridx3);
          float val17 = data0[(alu11+(alu3+alu16))];
          long alu18 = (alu16*16L);
          f32x8 val19 = *(f32x8u*)(data1+(alu11+(alu14+alu18)));
          acc0 = (val15+(val17*val19));
          f32x8 val20 = acc1;
          f32x8 val21 = *(f32x8u*)(data1+(alu11+(alu14+(alu18+8L))));
          acc1 = (val20+(val17*val21));
          f32x8 val22 = acc2;
          float val23 = data0[(alu11+((alu3+16L)+alu16))];
          acc2 = (val22+(val23*val19));
          f32x8 val24 = acc3;
          acc3 = (val24+(val23*val21));
          f32x8 val25 = acc4;
          float val26 = data0[(alu11+((alu3+32L)+alu16))];
          acc4 = (val25+(val26*val19));
          f32x8 val27 = acc5;
          acc5 = (val27+(val26*val21));
          f32x8 val28 = acc6;
          float val29 = data0[(alu11+((alu3+48L)+alu16))];
          acc6 = (val28+(val29*val19));
          f32x8 val30 = acc7;
          acc7 = (val30+(val29*val21));
          f32x8 val31 = acc8;
          float val32 = data0[(alu11+((alu3+64L)+alu16))];
          acc8 = (val31+(val32*val19));
          f32x8 val33 = acc9;
          acc9 = (val33+(val32*val21));
          f32x8 val34 = acc10;
          float val35 = data0[(alu11+((alu3+80L)+alu16))];
          acc10 = (val34+(val35*val19));
          f32x8 val36 = acc11;
          acc11 = (val36+(val35*val21));
        }
        f32x8 val37 = acc0;
        *(f32x8u*)(data2+(alu10+(alu2+alu13))) = val37;
        long alu38 = (alu13+8L);
        f32x8 val39 = acc1;
        *(f32x8u*)(data2+(alu10+(alu2+alu38))) = val39;
        f32x8 val40 = acc2;
        *(f32x8u*)(data2+(alu10+(alu4+alu13))) = val40;
        f32x8 val41 = acc3;
        *(f32x8u*)(data2+(alu10+(alu4+alu38))) = val41;
        f32x8 val42 = acc4;
        *(f32x8u*)(data2+(alu10+(alu5+alu13))) = val42;
        f32x8 val43 = acc5;
        *(f32x8u*)(data2+(alu10+(alu5+alu38))) = val43;
        f32x8 val44 = acc6;
        *(f32x8u*)(data2+(alu10+(alu6+alu13))) = val44;
        f32x8 val45 = acc7;
        *(f32x8u*)(data2+(alu10+(alu6+alu38))) = val45;
        f32x8 val46 = acc8;
        *(f32x8u*)(data2+(alu10+(alu7+alu13))) = val46;
        f32x8 val47 = acc9;
        *(f32x8u*)(data2+(alu10+(alu7+alu38))) = val47;
        f32x8 val48 = acc10;
        *(f32x8u*)(data2+(alu10+(alu8+alu13))) = val48;
        f32x8 val49 = acc11;
        *(f32x8u*)(data2+(alu10+(alu8+alu38))) = val49;
      }
    }
  }
}

// r_1_2_48: tmp1 tmp2
#include <math.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));

static inline f32x8 select_f32x8(i32x8 c, f32x8 a, f32x8 b) {
  return (f32x8)((c & (i32x8)a) | (~c & (i32x8)b));
}

static inline float across_max_f32x8_8(f32x8 x) {
  float y0 = ((x[0]>x[4])?x[0]:x[4]);
  float y1 = ((x[1]>x[5])?x[1]:x[5]);
  float y2 = ((x[2]>x[6])?x[2]:x[6]);
  float y3 = ((x[3]>x[7])?x[3]:x[7]);
  float y4 = ((y0>y2)?y0:y2);
  float y5 = ((y1>y3)?y1:y3);
  float y6 = ((y4>y5)?y4:y5);
  return y6;
}

enum {r_1_2_48_steps = 48};
void r_1_2_48(float* restrict data0, float* restrict data1, long first, long last) {
  for (int ridx11 = first; ridx11 < last; ridx11++) {
    long alu1 = ((long)ridx11);
    long alu2 = (alu1*48L);
    for (int ridx0 = 0; ridx0 < 2; ridx0++) {
      long alu3 = ((long)ridx0);
      long alu4 = (alu3*2304L);
      f32x8 val5 = *(f32x8u*)(data0+(alu4+alu2));
      f32x8 alu6 = select_f32x8((((i32x8){0,1,2,3,4,5,6,7})<=ridx11), (val5*0.25f), (-INFINITY-(f32x8){}));
      f32x8 val7 = *(f32x8u*)(data0+(alu4+(alu2+8L)));
      f32x8 alu8 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+8)<=ridx11), (val7*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu9 = select_f32x8((alu6>alu8), alu6, alu8);
      f32x8 val10 = *(f32x8u*)(data0+(alu4+(alu2+16L)));
      f32x8 alu11 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+16)<=ridx11), (val10*0.25f), (-INFINITY-(f32x8){}));
      f32x8 val12 = *(f32x8u*)(data0+(alu4+(alu2+24L)));
      f32x8 alu13 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+24)<=ridx11), (val12*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu14 = select_f32x8((alu11>alu13), alu11, alu13);
      f32x8 alu15 = select_f32x8((alu9>alu14), alu9, alu14);
      float alu16 = across_max_f32x8_8(alu15);
      float acc0;
      acc0 = -INFINITY;
      for (int ridx5 = 0; ridx5 < 16; ridx5++) {
        float val17 = acc0;
        float val18 = data0[(alu4+(alu2+(((long)ridx5)+32L)))];
        float alu19 = (((ridx5+32)<=ridx11)?(val18*0.25f):-INFINITY);
        acc0 = ((val17>alu19)?val17:alu19);
      }
      float val20 = acc0;
      data1[((alu3*48L)+alu1)] = ((alu16>val20)?alu16:val20);
    }
  }
}

// r_1_2_48: tmp1 tmp2 tmp3
#include <math.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));

static inline f32x8 select_f32x8(i32x8 c, f32x8 a, f32x8 b) {
  return (f32x8)((c & (i32x8)a) | (~c & (i32x8)b));
}

static inline float across_add_f32x8_8(f32x8 x) {
  float y0 = (x[0]+x[4]);
  float y1 = (x[1]+x[5]);
  float y2 = (x[2]+x[6]);
  float y3 = (x[3]+x[7]);
  float y4 = (y0+y2);
  float y5 = (y1+y3);
  float y6 = (y4+y5);
  return y6;
}

enum {r_1_2_48_steps = 48};
void r_1_2_48(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx8 = first; ridx8 < last; ridx8++) {
    long alu1 = ((long)ridx8);
    for (int ridx0 = 0; ridx0 < 2; ridx0++) {
      long alu2 = ((long)ridx0);
      long alu3 = ((alu2*48L)+alu1);
      f32x8 acc0;
      acc0 = (0.0f-(f32x8){});
      float val4 = data1[alu3];
      for (int ridx4 = 0; ridx4 < 6; ridx4++) {
        f32x8 val5 = acc0;
        f32x8 val6 = *(f32x8u*)(data0+((alu2*2304L)+((alu1*48L)+(((long)ridx4)*8L))));
        f32x8 alu7 = ((select_f32x8((((ridx4*8)+((i32x8){0,1,2,3,4,5,6,7}))<=ridx8), (val6*0.25f), (-INFINITY-(f32x8){}))+(val4*-1.0f))*1.4426950408889634f);
        i32x8 alu8 = (alu7<-150.0f);
        f32x8 alu9 = select_f32x8(alu8, (0.0f-(f32x8){}), alu7);
        f32x8 alu10 = select_f32x8((129.0f<alu9), (129.0f-(f32x8){}), alu9);
        f32x8 alu11 = (alu10+12582912.0f);
        f32x8 alu12 = (alu10+((alu11+-12582912.0f)*-1.0f));
        i32x8 alu13 = (((i32x8)alu11)+-1262485504);
        i32x8 alu14 = (alu13>>1);
        acc0 = (val5+select_f32x8(alu8, (0.0f-(f32x8){}), ((((alu12*((alu12*((alu12*((alu12*((alu12*((alu12*0.00015475194959435612f)+0.0013400273164734244f))+0.009618008509278297f))+0.055503278970718384f))+0.24022650718688965f))+0.6931471824645996f))+1.0f)*((f32x8)((alu14+127)<<23)))*((f32x8)(((alu13+(alu14*-1))+127)<<23)))));
      }
      f32x8 val15 = acc0;
      float alu16 = across_add_f32x8_8(val15);
      data2[alu3] = alu16;
    }
  }
}

// e_1_2_48_48: tmp1 tmp2 tmp3 tmp4
#include <math.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));

static inline f32x8 select_f32x8(i32x8 c, f32x8 a, f32x8 b) {
  return (f32x8)((c & (i32x8)a) | (~c & (i32x8)b));
}

enum {e_1_2_48_48_steps = 49};
void e_1_2_48_48(float* restrict data0, float* restrict data1, float* restrict data2, float* restrict data3, long first, long last) {
  for (int ridx21 = (first>0)?first-0:0; ridx21 < ((last<48)?last-0:48); ridx21++) {
    long alu1 = ((long)ridx21);
    long alu2 = (alu1*48L);
    for (int ridx7 = 0; ridx7 < 2; ridx7++) {
      long alu3 = ((long)ridx7);
      long alu4 = (alu3*2304L);
      long alu5 = ((alu3*48L)+alu1);
      long alu6 = (alu4+alu2);
      float val7 = data1[alu5];
      float val8 = data2[alu5];
      long alu9 = (alu4+(alu2+8L));
      long alu10 = (alu4+(alu2+16L));
      long alu11 = (alu4+(alu2+24L));
      f32x8 val12 = *(f32x8u*)(data0+alu6);
      float alu13 = (val7*-1.0f);
      float alu14 = (1.0f/val8);
      f32x8 val15 = *(f32x8u*)(data0+alu9);
      f32x8 val16 = *(f32x8u*)(data0+alu10);
      f32x8 val17 = *(f32x8u*)(data0+alu11);
      f32x8 alu18 = select_f32x8((((i32x8){0,1,2,3,4,5,6,7})<=ridx21), (val12*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu19 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+8)<=ridx21), (val15*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu20 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+16)<=ridx21), (val16*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu21 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+24)<=ridx21), (val17*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu22 = ((alu18+alu13)*1.4426950408889634f);
      f32x8 alu23 = ((alu19+alu13)*1.4426950408889634f);
      f32x8 alu24 = ((alu20+alu13)*1.4426950408889634f);
      f32x8 alu25 = ((alu21+alu13)*1.4426950408889634f);
      i32x8 alu26 = (alu22<-150.0f);
      i32x8 alu27 = (alu23<-150.0f);
      i32x8 alu28 = (alu24<-150.0f);
      i32x8 alu29 = (alu25<-150.0f);
      f32x8 alu30 = select_f32x8(alu26, (0.0f-(f32x8){}), alu22);
      f32x8 alu31 = select_f32x8(alu27, (0.0f-(f32x8){}), alu23);
      f32x8 alu32 = select_f32x8(alu28, (0.0f-(f32x8){}), alu24);
      f32x8 alu33 = select_f32x8(alu29, (0.0f-(f32x8){}), alu25);
      f32x8 alu34 = select_f32x8((129.0f<alu30), (129.0f-(f32x8){}), alu30);
      f32x8 alu35 = select_f32x8((129.0f<alu31), (129.0f-(f32x8){}), alu31);
      f32x8 alu36 = select_f32x8((129.0f<alu32), (129.0f-(f32x8){}), alu32);
      f32x8 alu37 = select_f32x8((129.0f<alu33), (129.0f-(f32x8){}), alu33);
      f32x8 alu38 = (alu34+12582912.0f);
      f32x8 alu39 = (alu35+12582912.0f);
      f32x8 alu40 = (alu36+12582912.0f);
      f32x8 alu41 = (alu37+12582912.0f);
      f32x8 alu42 = ((alu38+-12582912.0f)*-1.0f);
      i32x8 alu43 = (((i32x8)alu38)+-1262485504);
      f32x8 alu44 = ((alu39+-12582912.0f)*-1.0f);
      i32x8 alu45 = (((i32x8)alu39)+-1262485504);
      f32x8 alu46 = ((alu40+-12582912.0f)*-1.0f);
      i32x8 alu47 = (((i32x8)alu40)+-1262485504);
      f32x8 alu48 = ((alu41+-12582912.0f)*-1.0f);
      i32x8 alu49 = (((i32x8)alu41)+-1262485504);
      f32x8 alu50 = (alu34+alu42);
      i32x8 alu51 = (alu43>>1);
      f32x8 alu52 = (alu35+alu44);
      i32x8 alu53 = (alu45>>1);
      f32x8 alu54 = (alu36+alu46);
      i32x8 alu55 = (alu47>>1);
      f32x8 alu56 = (alu37+alu48);
      i32x8 alu57 = (alu49>>1);
      f32x8 alu58 = ((alu50*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu59 = ((f32x8)((alu51+127)<<23));
      f32x8 alu60 = ((f32x8)(((alu43+(alu51*-1))+127)<<23));
      f32x8 alu61 = ((alu52*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu62 = ((f32x8)((alu53+127)<<23));
      f32x8 alu63 = ((f32x8)(((alu45+(alu53*-1))+127)<<23));
      f32x8 alu64 = ((alu54*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu65 = ((f32x8)((alu55+127)<<23));
      f32x8 alu66 = ((f32x8)(((alu47+(alu55*-1))+127)<<23));
      f32x8 alu67 = ((alu56*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu68 = ((f32x8)((alu57+127)<<23));
      f32x8 alu69 = ((f32x8)(((alu49+(alu57*-1))+127)<<23));
      f32x8 alu70 = (alu50*((alu50*alu58)+0.009618008509278297f));
      f32x8 alu71 = (alu52*((alu52*alu61)+0.009618008509278297f));
      f32x8 alu72 = (alu54*((alu54*alu64)+0.009618008509278297f));
      f32x8 alu73 = (alu56*((alu56*alu67)+0.009618008509278297f));
      f32x8 alu74 = (alu50*(alu70+0.055503278970718384f));
      f32x8 alu75 = (alu52*(alu71+0.055503278970718384f));
      f32x8 alu76 = (alu54*(alu72+0.055503278970718384f));
      f32x8 alu77 = (alu56*(alu73+0.055503278970718384f));
      f32x8 alu78 = (alu50*(alu74+0.24022650718688965f));
      f32x8 alu79 = (alu52*(alu75+0.24022650718688965f));
      f32x8 alu80 = (alu54*(alu76+0.24022650718688965f));
      f32x8 alu81 = (alu56*(alu77+0.24022650718688965f));
      f32x8 alu82 = (alu50*(alu78+0.6931471824645996f));
      f32x8 alu83 = (alu52*(alu79+0.6931471824645996f));
      f32x8 alu84 = (alu54*(alu80+0.6931471824645996f));
      f32x8 alu85 = (alu56*(alu81+0.6931471824645996f));
      f32x8 alu86 = ((alu82+1.0f)*alu59);
      f32x8 alu87 = ((alu83+1.0f)*alu62);
      f32x8 alu88 = ((alu84+1.0f)*alu65);
      f32x8 alu89 = ((alu85+1.0f)*alu68);
      f32x8 alu90 = (select_f32x8(alu26, (0.0f-(f32x8){}), (alu86*alu60))*alu14);
      f32x8 alu91 = (select_f32x8(alu27, (0.0f-(f32x8){}), (alu87*alu63))*alu14);
      f32x8 alu92 = (select_f32x8(alu28, (0.0f-(f32x8){}), (alu88*alu66))*alu14);
      f32x8 alu93 = (select_f32x8(alu29, (0.0f-(f32x8){}), (alu89*alu69))*alu14);
      *(f32x8u*)(data3+alu6) = alu90;
      *(f32x8u*)(data3+alu9) = alu91;
      *(f32x8u*)(data3+alu10) = alu92;
      *(f32x8u*)(data3+alu11) = alu93;
    }
  }
  if (first<=48 && 48<last) for (int ridx9 = 0; ridx9 < 2; ridx9++) {
    long alu94 = ((long)ridx9);
    long alu95 = (alu94*2304L);
    for (int ridx10 = 0; ridx10 < 48; ridx10++) {
      long alu96 = ((long)ridx10);
      long alu97 = (alu96*48L);
      long alu98 = ((alu94*48L)+alu96);
      long alu99 = (alu95+(alu97+32L));
      float val100 = data1[alu98];
      float val101 = data2[alu98];
      long alu102 = (alu95+(alu97+40L));
      f32x8 val103 = *(f32x8u*)(data0+alu99);
      float alu104 = (val100*-1.0f);
      float alu105 = (1.0f/val101);
      f32x8 val106 = *(f32x8u*)(data0+alu102);
      f32x8 alu107 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+32)<=ridx10), (val103*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu108 = select_f32x8(((((i32x8){0,1,2,3,4,5,6,7})+40)<=ridx10), (val106*0.25f), (-INFINITY-(f32x8){}));
      f32x8 alu109 = ((alu107+alu104)*1.4426950408889634f);
      f32x8 alu110 = ((alu108+alu104)*1.4426950408889634f);
      i32x8 alu111 = (alu109<-150.0f);
      i32x8 alu112 = (alu110<-150.0f);
      f32x8 alu113 = select_f32x8(alu111, (0.0f-(f32x8){}), alu109);
      f32x8 alu114 = select_f32x8(alu112, (0.0f-(f32x8){}), alu110);
      f32x8 alu115 = select_f32x8((129.0f<alu113), (129.0f-(f32x8){}), alu113);
      f32x8 alu116 = select_f32x8((129.0f<alu114), (129.0f-(f32x8){}), alu114);
      f32x8 alu117 = (alu115+12582912.0f);
      f32x8 alu118 = (alu116+12582912.0f);
      f32x8 alu119 = ((alu117+-12582912.0f)*-1.0f);
      i32x8 alu120 = (((i32x8)alu117)+-1262485504);
      f32x8 alu121 = ((alu118+-12582912.0f)*-1.0f);
      i32x8 alu122 = (((i32x8)alu118)+-1262485504);
      f32x8 alu123 = (alu115+alu119);
      i32x8 alu124 = (alu120>>1);
      f32x8 alu125 = (alu116+alu121);
      i32x8 alu126 = (alu122>>1);
      f32x8 alu127 = ((alu123*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu128 = ((f32x8)((alu124+127)<<23));
      f32x8 alu129 = ((f32x8)(((alu120+(alu124*-1))+127)<<23));
      f32x8 alu130 = ((alu125*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu131 = ((f32x8)((alu126+127)<<23));
      f32x8 alu132 = ((f32x8)(((alu122+(alu126*-1))+127)<<23));
      f32x8 alu133 = (alu123*((alu123*alu127)+0.009618008509278297f));
      f32x8 alu134 = (alu125*((alu125*alu130)+0.009618008509278297f));
      f32x8 alu135 = (alu123*(alu133+0.055503278970718384f));
      f32x8 alu136 = (alu125*(alu134+0.055503278970718384f));
      f32x8 alu137 = (alu123*(alu135+0.24022650718688965f));
      f32x8 alu138 = (alu125*(alu136+0.24022650718688965f));
      f32x8 alu139 = (alu123*(alu137+0.6931471824645996f));
      f32x8 alu140 = (alu125*(alu138+0.6931471824645996f));
      f32x8 alu141 = ((alu139+1.0f)*alu128);
      f32x8 alu142 = ((alu140+1.0f)*alu131);
      f32x8 alu143 = (select_f32x8(alu111, (0.0f-(f32x8){}), (alu141*alu129))*alu105);
      f32x8 alu144 = (select_f32x8(alu112, (0.0f-(f32x8){}), (alu142*alu132))*alu105);
      *(f32x8u*)(data3+alu99) = alu143;
      *(f32x8u*)(data3+alu102) = alu144;
    }
  }
}

// e_1_2_1_1_48_16: in2 tmp5
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

void e_1_2_1_1_48_16(float* restrict data0, float* restrict data1) {
  for (int ridx5 = 0; ridx5 < 48; ridx5++) {
    long alu1 = (((long)ridx5)*32L);
    f32x8 val2 = *(f32x8u*)(data0+alu1);
    *(f32x8u*)(data1+alu1) = (val2*3.0f);
    long alu3 = (alu1+8L);
    f32x8 val4 = *(f32x8u*)(data0+alu3);
    *(f32x8u*)(data1+alu3) = (val4*3.0f);
    long alu5 = (alu1+16L);
    f32x8 val6 = *(f32x8u*)(data0+alu5);
    *(f32x8u*)(data1+alu5) = (val6*3.0f);
    long alu7 = (alu1+24L);
    f32x8 val8 = *(f32x8u*)(data0+alu7);
    *(f32x8u*)(data1+alu7) = (val8*3.0f);
  }
}

// r_1_2_48_16: tmp4 tmp5 out0
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

enum {r_1_2_48_16_steps = 8};
void r_1_2_48_16(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx15 = first; ridx15 < last; ridx15++) {
    long alu1 = ((long)ridx15);
    long alu2 = (alu1*96L);
    long alu3 = (alu1*288L);
    for (int ridx0 = 0; ridx0 < 2; ridx0++) {
      long alu4 = ((long)ridx0);
      long alu5 = (alu4*768L);
      f32x8 acc0;
      acc0 = (0.0f-(f32x8){});
      long alu6 = (alu4*2304L);
      f32x8 acc1;
      acc1 = (0.0f-(f32x8){});
      f32x8 acc2;
      acc2 = (0.0f-(f32x8){});
      f32x8 acc3;
      acc3 = (0.0f-(f32x8){});
      f32x8 acc4;
      acc4 = (0.0f-(f32x8){});
      f32x8 acc5;
      acc5 = (0.0f-(f32x8){});
      f32x8 acc6;
      acc6 = (0.0f-(f32x8){});
      f32x8 acc7;
      acc7 = (0.0f-(f32x8){});
      f32x8 acc8;
      acc8 = (0.0f-(f32x8){});
      f32x8 acc9;
      acc9 = (0.0f-(f32x8){});
      f32x8 acc10;
      acc10 = (0.0f-(f32x8){});
      f32x8 acc11;
      acc11 = (0.0f-(f32x8){});
      #pragma GCC unroll 4
      for (int ridx3 = 0; ridx3 < 48; ridx3++) {
        f32x8 val7 = acc0;
        long alu8 = ((long)ridx3);
        float val9 = data0[(alu6+(alu3+alu8))];
        long alu10 = (alu8*16L);
        f32x8 val11 = *(f32x8u*)(data1+(alu5+alu10));
        acc0 = (val7+(val9*val11));
        f32x8 val12 = acc1;
        f32x8 val13 = *(f32x8u*)(data1+(alu5+(alu10+8L)));
        acc1 = (val12+(val9*val13));
        f32x8 val14 = acc2;
        float val15 = data0[(alu6+((alu3+48L)+alu8))];
        acc2 = (val14+(val15*val11));
        f32x8 val16 = acc3;
        acc3 = (val16+(val15*val13));
        f32x8 val17 = acc4;
        float val18 = data0[(alu6+((alu3+96L)+alu8))];
        acc4 = (val17+(val18*val11));
        f32x8 val19 = acc5;
        acc5 = (val19+(val18*val13));
        f32x8 val20 = acc6;
        float val21 = data0[(alu6+((alu3+144L)+alu8))];
        acc6 = (val20+(val21*val11));
        f32x8 val22 = acc7;
        acc7 = (val22+(val21*val13));
        f32x8 val23 = acc8;
        float val24 = data0[(alu6+((alu3+192L)+alu8))];
        acc8 = (val23+(val24*val11));
        f32x8 val25 = acc9;
        acc9 = (val25+(val24*val13));
        f32x8 val26 = acc10;
        float val27 = data0[(alu6+((alu3+240L)+alu8))];
        acc10 = (val26+(val27*val11));
        f32x8 val28 = acc11;
        acc11 = (val28+(val27*val13));
      }
      f32x8 val29 = acc0;
      *(f32x8u*)(data2+(alu5+alu2)) = val29;
      f32x8 val30 = acc1;
      *(f32x8u*)(data2+(alu5+(alu2+8L))) = val30;
      f32x8 val31 = acc2;
      *(f32x8u*)(data2+(alu5+(alu2+16L))) = val31;
      f32x8 val32 = acc3;
      *(f32x8u*)(data2+(alu5+(alu2+24L))) = val32;
      f32x8 val33 = acc4;
      *(f32x8u*)(data2+(alu5+(alu2+32L))) = val33;
      f32x8 val34 = acc5;
      *(f32x8u*)(data2+(alu5+(alu2+40L))) = val34;
      f32x8 val35 = acc6;
      *(f32x8u*)(data2+(alu5+(alu2+48L))) = val35;
      f32x8 val36 = acc7;
      *(f32x8u*)(data2+(alu5+(alu2+56L))) = val36;
      f32x8 val37 = acc8;
      *(f32x8u*)(data2+(alu5+(alu2+64L))) = val37;
      f32x8 val38 = acc9;
      *(f32x8u*)(data2+(alu5+(alu2+72L))) = val38;
      f32x8 val39 = acc10;
      *(f32x8u*)(data2+(alu5+(alu2+80L))) = val39;
      f32x8 val40 = acc11;
      *(f32x8u*)(data2+(alu5+(alu2+88L))) = val40;
    }
  }
}
